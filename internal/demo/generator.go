package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	shards   = 16
	articles = 400
	people   = 300
	maxBatch = 500
	// batchEvery is how often the generator writes.
	batchEvery   = 10 * time.Millisecond
	doubtTimeout = 30 * time.Second
	// restEvery is how long an article rests: longer than settleAfter.
	restEvery = 12 * time.Second
)

//go:embed write.lua
var writeLua string

// batch is one write of the generator.
type batch struct {
	number  int64
	counts  []string // articles that are viewed once each
	changes []change // of users; each user at most once
}

// change writes or deletes a user's hash.
type change struct {
	id int64
	user
}

// errInDoubt: the demo ended while Redis was away.
var errInDoubt = errors.New("it is not known whether Redis has the last writes, so nothing can be audited")

// generator writes to Redis as an application would. It knows at every moment exactly which writes Redis has: if a reply is lost, it
// sends the batch again, under the number that Redis keeps for the last one.
type generator struct {
	server   *server
	scene    scene
	expected *expected
	naive    bool // the naive program gets its counts, too
	rng      *rand.Rand
	rate     int
	script   *redis.Script
	conn     redis.Conn // nil after trouble
	half     int        // the half of the articles that has views now
	batches  int64
	changes  int64
	doubt    time.Duration // how long run tries to find out the outcome of the last batch
}

func newGenerator(s *server, sc scene, e *expected, seed uint64, rate int) *generator {
	return &generator{
		server: s, scene: sc, expected: e, rng: rand.New(rand.NewPCG(seed, 1)), rate: rate,
		script: redis.NewScript(1, writeLua), doubt: doubtTimeout,
	}
}

// run writes until ctx ends. Then the outcome of the last batch is certain, or an error says that it is not.
func (g *generator) run(ctx context.Context) error {
	defer g.hangUp()
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	began := time.Now()
	for last := began; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// Writes that were due while Redis was away are left out.
		now := time.Now()
		n := int(float64(g.rate)*min(now.Sub(last), time.Second).Seconds() + g.rng.Float64())
		last = now
		if n == 0 {
			continue
		}
		// Half of the articles rest, so that their rows can be compared while the demo runs.
		g.half = int(now.Sub(began)/restEvery) % 2
		b := g.next(min(n, maxBatch))
		g.expected.ask(b)
		if err := g.write(ctx, b); err != nil {
			return err
		}
		g.expected.add(b, time.Now())
	}
}

// next makes n writes: three of four are views of an article.
func (g *generator) next(n int) batch {
	g.batches++
	b := batch{number: g.batches}
	touched := map[int64]bool{}
	for range n {
		if g.rng.IntN(4) > 0 {
			// A few articles get most of the views.
			a := int(float64(articles)*g.rng.Float64()*g.rng.Float64())/2*2 + g.half
			b.counts = append(b.counts, strconv.Itoa(a))
			continue
		}
		id := int64(g.rng.IntN(people)) + 1
		if touched[id] {
			continue
		}
		touched[id] = true
		g.changes++
		u := user{version: g.changes, deleted: g.rng.IntN(10) == 0}
		if !u.deleted {
			u.name = names()[g.rng.IntN(len(names()))]
			u.note = fmt.Sprintf("note %d of 'user' \"%d\"", g.changes, id)
		}
		b.changes = append(b.changes, change{id, u})
	}
	return b
}

// names are texts with characters that must arrive unchanged.
func names() []string {
	return []string{"Ada", "Grace O'Hopper", "Łukasz", "李 雷", "Zoë \\ Smith", "\"Q\"", "🦉 Athena", "a, b\tc"}
}

// write makes Redis do the batch once. On trouble it repeats the batch until Redis answers; after ctx has ended, no longer than g.doubt.
func (g *generator) write(ctx context.Context, b batch) error {
	var deadline time.Time
	for {
		err := g.attempt(context.WithoutCancel(ctx), b)
		if err == nil {
			return nil
		}
		g.hangUp()
		if ctx.Err() != nil {
			if deadline.IsZero() {
				deadline = time.Now().Add(g.doubt)
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%w: %w", errInDoubt, err)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// attempt writes the hashes and counts, and after that marks the changed rows, if the application does, in the application's order.
func (g *generator) attempt(ctx context.Context, b batch) error {
	if g.conn == nil {
		c, err := g.server.dial(ctx)
		if err != nil {
			return err
		}
		g.conn = c
	}
	if _, err := g.script.DoContext(ctx, g.conn, g.writes(b)...); err != nil {
		return err
	}
	if len(b.changes) == 0 || !g.scene.marks {
		return nil
	}
	// To mark a row twice does no harm: it is read once more.
	ids := redis.Args{g.server.changedKey()}
	for _, c := range b.changes {
		ids = ids.Add(c.id)
	}
	_, err := redis.DoContext(g.conn, ctx, "SADD", ids...)
	return err
}

// writes are the arguments of write.lua.
func (g *generator) writes(b batch) redis.Args {
	args := redis.Args{g.server.prefix + ":batch", b.number}
	command := func(words ...any) { args = args.Add(len(words)).Add(words...) }
	for _, article := range b.counts {
		g.scene.view(g.server, article, command)
		if g.naive {
			command("HINCRBY", g.server.naiveKey(article), article, 1)
		}
	}
	for _, c := range b.changes {
		g.scene.change(g.server, c, command)
	}
	return args
}

func (g *generator) hangUp() {
	if g.conn != nil {
		_ = g.conn.Close()
		g.conn = nil
	}
}

func (s *server) viewsKey(shard string) string { return s.prefix + ":views:" + shard }
func (s *server) userKey(id string) string     { return s.prefix + ":user:" + id }
func (s *server) changedKey() string           { return s.prefix + ":changed:user" }
