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
	// batchEvery is the time between two writes of the generator.
	batchEvery   = 10 * time.Millisecond
	doubtTimeout = 30 * time.Second
	// restEvery is how long an article gets no views. It is longer than settleAfter.
	restEvery = 12 * time.Second
)

//go:embed write.lua
var writeLua string

// batch is a set of changes that the generator writes to Redis at once.
type batch struct {
	number  int64
	counts  []string // articles that get one view each
	changes []change // changes of users; at most one for each user
}

// change writes or deletes a user's hash.
type change struct {
	id int64
	user
}

// errInDoubt means that the demo ended while Redis did not answer.
var errInDoubt = errors.New("it is not known whether Redis stored the last writes, so the demo cannot audit the result")

// generator writes to Redis as an application would. At every moment the generator knows exactly which writes Redis has. If a reply is
// lost, it sends the batch again with the same number, because Redis stores the number of the last batch.
type generator struct {
	server   *server
	scene    scene
	expected *expected
	naive    bool // the naive program also gets the generator's counts
	rng      *rand.Rand
	rate     int
	script   *redis.Script
	conn     redis.Conn // nil after an error
	half     int        // the half of the articles that gets views now
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

// run writes until ctx ends. Then it makes sure that the outcome of the last batch is known. If it stays unknown, run returns an error.
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
		// The generator skips writes that were due while Redis did not answer.
		now := time.Now()
		n := int(float64(g.rate)*min(now.Sub(last), time.Second).Seconds() + g.rng.Float64())
		last = now
		if n == 0 {
			continue
		}
		// Half of the articles get no views, so that their rows can be compared while the demo runs.
		g.half = int(now.Sub(began)/restEvery) % 2
		b := g.next(min(n, maxBatch))
		g.expected.ask(b)
		if err := g.write(ctx, b); err != nil {
			return err
		}
		g.expected.add(b, time.Now())
	}
}

// next returns a batch of n writes. Three of four writes are views of an article.
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

// names returns texts with characters that must arrive unchanged.
func names() []string {
	return []string{"Ada", "Grace O'Hopper", "Łukasz", "李 雷", "Zoë \\ Smith", "\"Q\"", "🦉 Athena", "a, b\tc"}
}

// write makes Redis do the batch once. After an error it repeats the batch until Redis answers. After ctx has ended, it repeats the batch
// for at most g.doubt.
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

// attempt writes the hashes and counts of a batch, in the order in which the application would write them. If the application marks the
// rows that it changes, attempt then marks them.
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
	// Marking a row twice does no harm: the row is read once more.
	ids := redis.Args{g.server.changedKey()}
	for _, c := range b.changes {
		ids = ids.Add(c.id)
	}
	_, err := redis.DoContext(g.conn, ctx, "SADD", ids...)
	return err
}

// writes returns the arguments for the script write.lua.
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
