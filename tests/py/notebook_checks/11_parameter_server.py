QUICK = {"passes": 1, "k": 2}
# ---- checks
assert len(found["shards:1"]) == ranks + 1
losses = [of_ranks[0][1] for of_ranks in found.values()]
assert max(losses) < 1.5 * min(losses)
for names in families.values():
    assert all(megabytes[name] < whole for name in names)
    few = [megabytes[name] for name in names]
    assert few == sorted(few, reverse=True)
for d in (0.01, 0.03, 0.1, 0.3):
    assert megabytes[f"dvf-l2:{d}"] < megabytes[f"dvf:{d}"]
for name in ("dvf:0.01", "dvf:0.03", "dvf-l2:0.01"):
    assert abs(results[name]["loss"] / none["loss"] - 1) < 0.05
