QUICK = {"passes": 1, "largest": 8}
# ---- checks
for name, result in results.items():
    degree = {"average": 2 * (ranks - 1) / ranks}.get(name) or malt.Graph(name, ranks).degree_max
    assert all(abs(sent / (result["syncs"] * result["bytes"]) - degree) < 0.02 * degree for sent in result["sent"]), (
        name
    )
    assert result["loss"][-1] < 0.2, name
    assert abs(result["loss"][-1] / results["average"]["loss"][-1] - 1) < 0.1, name
slow = {name: reached["10 Mbit/s", name] for name in modes}
if ranks > 2:  # two ranks are the same graph in each, and send as much
    assert slow["halton"] <= 1.2 * slow["all"]  # both have their ups and downs, by what arrives when
    assert slow["average"] < slow["all"]
assert not malt.Graph("halton-paper", 8, allow_disconnected=True).connected
