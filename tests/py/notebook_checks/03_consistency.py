QUICK = {"passes": 1, "slow": 4}
# ---- checks
fast = {mode: result[1] for mode, result in results.items()}
for mode in ("bsp", "notify-ack"):
    assert fast[mode]["age"] == 0
    assert fast[mode]["oldest"] == 0
assert fast["ssp:2"]["oldest"] <= 2
assert fast["async"]["waiting"] == 0
assert fast["bsp"]["waiting"] > fast["bsp"]["working"]
assert all(result[0]["final"] < 0.3 for result in results.values())
