QUICK = {"every": 10}
# ---- checks
assert max(apart.values()) < 1e-12
assert sent["rows, all"] < sent["rows, butterfly"] + (ranks == 2)
assert sent["rows, all"] < sent["whole arrays"]
for share in shares.values():
    assert share == sorted(share, reverse=True)
    assert share[-1] > share[0] / numbers[-1]
