import json


class Cart:
    def __init__(self):
        self.items = {}

    def add(self, name, price, count=1):
        if count < 1:
            raise ValueError("count")
        old = self.items.get(name, (price, 0))
        self.items[name] = (price, old[1] + count)

    def total(self):
        return sum(price * count for price, count in self.items.values())

    def save(self, path):
        path.write_text(json.dumps(self.items))
