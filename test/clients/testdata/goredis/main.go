// Program trial calls the functions of clients/goredis for the test in test/clients.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"

	changed "baton/clients/goredis"
)

func main() {
	ctx, c := context.Background(), redis.NewClient(&redis.Options{Addr: os.Args[1], MaxRetries: -1})
	users, hits := changed.Index{Key: "changed:user"}, changed.Index{Key: "changed:hits"}
	save := func(id string, fields map[string]any) error {
		return changed.Save(ctx, c, "user:"+id, fields, users, id)
	}
	switch os.Args[2] {
	case "each":
		must(save("ä 1", map[string]any{"n": 7}))
		must(changed.Remove(ctx, c, "user:2", users, "2"))
		must(changed.Count(ctx, c, "hits:home", 2, hits, "home"))
		must(changed.CountField(ctx, c, "views", 16, "123456789", 3))
		must(changed.Change(ctx, c, changed.Index{Key: "changed:board", Scored: true}, []string{"a", "b"}, func(tx redis.Pipeliner) {
			tx.ZAdd(ctx, "board", redis.Z{Score: 1, Member: "a"}, redis.Z{Score: 2, Member: "b"})
		}))
	case "work":
		worker, n := number(os.Args[3]), number(os.Args[4])
		for i := range n {
			id := strconv.Itoa(worker*1000 + i%50)
			if i%7 == 6 {
				must(changed.Remove(ctx, c, "user:"+id, users, id))
			} else {
				must(save(id, map[string]any{"n": i}))
			}
			page := strconv.Itoa(i % 10)
			must(changed.Count(ctx, c, "hits:"+page, 1, hits, page))
			must(changed.CountField(ctx, c, "views", 16, page, 1))
			fmt.Println(i)
		}
	case "lost":
		report(changed.Count(ctx, c, "hits:lost", 1, hits, "lost"))
	case "lost-field":
		report(changed.CountField(ctx, c, "views", 1, "lost", 1))
	case "refused":
		report(save("1", map[string]any{"n": 1}))
		must(changed.CountField(ctx, c, "views", 16, "1", 1)) // the connection can still be used
	case "null":
		report(save("1", map[string]any{"n": nil}))
	}
}

func report(err error) {
	if err != nil {
		fmt.Println("error", err)
		return
	}
	fmt.Println("ok")
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
