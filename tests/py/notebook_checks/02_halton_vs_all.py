QUICK = {"passes": 1, "largest": 8}
# ---- checks
for name, result in results.items():
    degree = {"average": 2 * (ranks - 1) / ranks}.get(name) or malt.Graph(name, ranks).degree_max
    assert all(abs(sent / (result["syncs"] * result["bytes"]) - degree) < 0.02 * degree for sent in result["sent"]), (
        name
    )
    assert result["loss"][-1] < 0.2, name
    assert abs(result["loss"][-1] / results["average"]["loss"][-1] - 1) < 0.1, name
assert reached["100 Mbit/s", "average"] < reached["100 Mbit/s", "halton"] or ranks < 8
assert reached["100 Mbit/s", "halton"] <= 1.2 * reached["100 Mbit/s", "all"]
assert not malt.Graph(
    [[(rank + step) % 8 for step in printed(8)] for rank in range(8)], allow_disconnected=True
).connected
