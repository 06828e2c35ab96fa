# On-balance volume: a running sum, against its own past.
# mypy: ignore-errors
def factor(panel):
    direction = np.sign(panel["close"].diff()).fillna(0.0)
    balance = (direction * panel["volume"].fillna(0.0)).cumsum()
    return (balance - balance.rolling(30).mean()) / (balance.rolling(30).std() + 1.0)
