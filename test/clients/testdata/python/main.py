import sys

sys.path[:0] = sys.argv[1:2]  # the folder of the helper
sys.dont_write_bytecode = True
import changed
import redis

host, port = sys.argv[2].split(":")
options = {}
if int(redis.__version__.split(".")[0]) >= 6:
    from redis.backoff import NoBackoff
    from redis.retry import Retry
    options["retry"] = Retry(NoBackoff(), 0)
r = redis.Redis(host=host, port=int(port), **options)


def save(id, fields):
    changed.save(r, f"user:{id}", fields, "changed:user", id)


def attempt(call, *args):
    try:
        call(*args)
        print("ok")
    except redis.RedisError as e:
        print("error", e)


mode = sys.argv[3]
if mode == "each":
    save("ä 1", {"n": 7})
    changed.remove(r, "user:2", "changed:user", "2")
    changed.count(r, "hits:home", 2, "changed:hits", "home")
    changed.count_field(r, "views", 16, "123456789", 3)
    changed.change(r, "changed:board", ["a", "b"], lambda tx: tx.zadd("board", {"a": 1, "b": 2}), scored=True)
elif mode == "work":
    worker, n = int(sys.argv[4]), int(sys.argv[5])
    for i in range(n):
        id = worker * 1000 + i % 50
        if i % 7 == 6:
            changed.remove(r, f"user:{id}", "changed:user", id)
        else:
            save(id, {"n": i})
        page = i % 10
        changed.count(r, f"hits:{page}", 1, "changed:hits", page)
        changed.count_field(r, "views", 16, page, 1)
        print(i, flush=True)
elif mode == "lost":
    attempt(changed.count, r, "hits:lost", 1, "changed:hits", "lost")
elif mode == "lost-field":
    attempt(changed.count_field, r, "views", 1, "lost", 1)
elif mode == "refused":
    attempt(save, "1", {"n": 1})
    changed.count_field(r, "views", 16, "1", 1)  # the connection is fit for more
elif mode == "null":
    attempt(save, "1", {"n": None})
