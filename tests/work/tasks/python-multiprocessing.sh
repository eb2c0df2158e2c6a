#!/bin/sh
# needs: python3
set -eu
cat >pool.py <<'END' # a file: processes that are not forked (Python 3.14) read it again
import concurrent.futures, multiprocessing
def square(x):
    return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(4) as pool:
        assert pool.map(square, range(50)) == [x * x for x in range(50)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(square, range(10))) == 285
    q = multiprocessing.Queue()
    p = multiprocessing.Process(target=q.put, args=("x",))
    p.start()
    assert q.get(timeout=90) == "x"
    p.join()
    lock, value = multiprocessing.Lock(), multiprocessing.Value("i", 0)
    with lock:
        value.value += 1
END
python3 pool.py
rm pool.py
