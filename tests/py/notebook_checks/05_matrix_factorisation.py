QUICK = {"passes": 3}
DATA = True
# ---- checks
rmse = {name: errors[-1] for name, (errors, _) in results.items()}
assert rmse["serial"] < 0.9
assert abs(rmse["changes"] / rmse["serial"] - 1) < 0.005
assert rmse["changes"] < min(rmse["mean"], rmse["replace"])
assert all(0 < share < 0.7 for name, (_, share) in results.items() if name != "serial")
