QUICK = {"steps": 32, "pace": 0.004, "points": 1}
# ---- checks
for name, (_, options) in runs.items():
    result, slack = results[name], int(options.get("consistency", "ssp:0")[4:])
    for step in range(slack, steps):  # a sync returns when all have come within the slack
        assert (result["left"][:, step] >= result["came"][:, step - slack].max()).all()
    assert result["age"].max() <= slack
    assert len(set(result["loss"])) == 1
    if "changes" in name:
        assert abs(result["loss"][0] / results["bsp"]["loss"][0] - 1) < 0.1
