QUICK = {"passes": 1, "windows": 40_000, "digits": 10_000, "clusters": 10}
NEEDS = ["sklearn", "scipy"]
DATA = True
# ---- checks
assert all(c[-1] == curve[0][-1] for c in curve)
assert serial[-1] > 0.91
assert abs(curve[0][-1] - serial[-1]) < 0.03  # few windows, one pass
assert all(np.array_equal(c, alone.feature_count_) for c in counted)
assert all(np.array_equal(c, centres[0]) for c in centres)
assert distances[0] < 1.02 * distance
