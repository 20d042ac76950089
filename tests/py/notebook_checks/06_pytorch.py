QUICK = {"passes": 1, "digits": 12_000, "rates": (0.1, 0.4), "sizes": (2,)}
NEEDS = ["torch"]
DATA = True
# ---- checks
assert all(c == curve[0] for c in curve)
assert serial[-1] > 0.85
assert abs(curve[0][-1] - serial[-1]) < 0.04  # few digits, few steps
assert found[2][1] > found[2][0]
apart_at_last = {way: max(a[i][-1] for a in apart) for i, way in enumerate(ways)}
assert apart_at_last["params", "all"] == apart_at_last["grads", "all"] == 0
assert difference < 0.01
if ranks > 2:
    assert 0 < apart_at_last["params", "halton"] < 0.1
    assert apart_at_last["grads", "halton"] > 5 * apart_at_last["params", "halton"]
for how in ("mixed", "sorted"):
    assert len({one[how, True] for one in normed}) == 1
assert np.mean([one["sorted", False] for one in normed]) < normed[0]["sorted", True] - 0.01
