package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
	"baton/internal/testsupport"
)

// trial contains the results of one node, from its start to its end.
type trial struct {
	memory, peak   float64 // MB
	goroutines     int
	started, ended []time.Duration // of every run, since the slot of the run, sorted
	failures       []string
	// These are the processor times of the runs.
	allCPU, ownCPU, redisCPU time.Duration
}

func (t *trial) perRun(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000 / float64(max(1, len(t.ended)))
}

// measure runs a node with the jobs of the options until the jobs have had their slots.
func measure(ctx context.Context, o options, dir string) (t *trial, err error) {
	server, err := testsupport.RunRedis(dir, testsupport.RedisAOF())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	c, err := server.Dial()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	n, err := start(ctx, o, dir, server.URL())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	t = &trial{}
	if err := n.awaitLeading(ctx); err != nil {
		return nil, err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return nil, err
	}
	before, err := n.cpu(server.Pid())
	if err != nil {
		return nil, err
	}
	if o.burst > 0 {
		if err := t.rounds(ctx, o, c); err != nil {
			return nil, err
		}
	}
	after, err := n.cpu(server.Pid())
	if err != nil {
		return nil, err
	}
	t.ownCPU, t.redisCPU = after.own-before.own, after.redis-before.redis
	t.allCPU = after.tree - before.tree + t.redisCPU
	if t.memory, err = rig.ResidentMB(n.Pid()); err != nil {
		return nil, err
	}
	if t.peak, err = rig.PeakMB(n.Pid()); err != nil {
		return nil, err
	}
	t.goroutines, err = n.metric(ctx, "go_goroutines")
	return t, err
}

// rounds waits until the jobs have had their slots, and reads the results of their runs.
func (t *trial) rounds(ctx context.Context, o options, c redis.Conn) error {
	// These are the first whole slot from now on, and the last slot. The results are read before the next slot.
	first := time.Now().Truncate(o.every).Add(o.every)
	last := first.Add(time.Duration(o.rounds-1) * o.every)
	if err := pause(ctx, time.Until(last)+o.every-time.Second); err != nil {
		return err
	}
	for i := range o.burst {
		entries, err := redis.Values(c.Do("XRANGE", fmt.Sprintf("{baton}:job:%s:runs", name(i)), "-", "+"))
		if err != nil {
			return err
		}
		for _, e := range entries {
			parts, err := redis.Values(e, nil)
			if err != nil {
				return err
			}
			f, err := redis.StringMap(parts[1], nil)
			if err != nil {
				return err
			}
			at := func(name string) time.Time { ms, _ := strconv.ParseInt(f[name], 10, 64); return time.UnixMilli(ms) }
			slot := at("slot")
			if f["state"] == "missed" && f["reason"] == "unknown" {
				continue // the job is new
			}
			if f["state"] == "missed" {
				t.failures = append(t.failures, fmt.Sprintf("%s: missed: %s", name(i), f["reason"]))
				continue
			}
			if slot.Before(first) || slot.After(last) {
				continue
			}
			if f["state"] != "succeeded" {
				t.failures = append(t.failures, fmt.Sprintf("%s: %s: %s", name(i), f["state"], f["error"]))
			}
			t.started = append(t.started, at("started").Sub(slot))
			t.ended = append(t.ended, at("finished").Sub(slot))
		}
	}
	slices.Sort(t.started)
	slices.Sort(t.ended)
	return nil
}

// millis returns the nearest-rank percentile in milliseconds.
func millis(sorted []time.Duration, percent int) int64 {
	if len(sorted) == 0 {
		return -1
	}
	return sorted[max((len(sorted)*percent+99)/100, 1)-1].Milliseconds()
}

func name(i int) string { return fmt.Sprintf("job-%04d", i) }

// node is a real `baton run`.
type node struct {
	*rig.Process
	url string
}

// httpPort is the port of the measured node.
const httpPort = 20747

func start(_ context.Context, o options, dir, redisURL string) (*node, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "node: {id: n1}\nredis: {url: %q}\nhttp: {listen: \"127.0.0.1:%d\"}\n", redisURL, httpPort)
	if o.jobs > 0 {
		b.WriteString("jobs:\n")
	}
	for i := range o.jobs {
		schedule := "0 0 1 1 *"
		if i < o.burst {
			schedule = "@every " + o.every.String()
		}
		fmt.Fprintf(&b, "- {name: %s, schedule: %q, command: [\"true\"]}\n", name(i), schedule)
	}
	return startWith(o.program, dir, b.String())
}

// startWith runs baton with the given configuration.
func startWith(program, dir, configuration string) (*node, error) {
	file := filepath.Join(dir, "baton.yaml")
	if err := os.WriteFile(file, []byte(configuration), 0o600); err != nil {
		return nil, err
	}
	p, err := rig.Launch([]string{program, "run", "--config", file})
	if err != nil {
		return nil, err
	}
	return &node{p, fmt.Sprintf("http://127.0.0.1:%d", httpPort)}, nil
}

func (n *node) awaitLeading(ctx context.Context) error {
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		if n.leads(ctx) {
			return nil
		}
		select {
		case <-n.Done():
			return fmt.Errorf("baton run has ended: %w", n.Err())
		default:
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("baton does not lead after 30 s; it wrote:\n" + n.Log())
}

// leads reports whether the node leads. It uses a request that costs the node nothing, because the metrics of all jobs would take memory.
func (n *node) leads(ctx context.Context) bool {
	resp, err := n.get(ctx, "/-/leader")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (n *node) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+path, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(req)
}

// metric returns the value of a series of /metrics.
func (n *node) metric(ctx context.Context, series string) (int, error) {
	resp, err := n.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), series+" "); found {
			f, err := strconv.ParseFloat(text, 64)
			return int(f), err
		}
	}
	return 0, fmt.Errorf("/metrics has no %s", series)
}

// usage contains the processor times so far.
type usage struct{ own, tree, redis time.Duration }

// cpu returns the processor time of the node, of the node with all of its ended children, and of Redis.
func (n *node) cpu(redisPid int) (u usage, err error) {
	if u.own, err = rig.CPU(n.Pid()); err != nil {
		return u, err
	}
	if u.redis, err = rig.CPU(redisPid); err != nil {
		return u, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n.Pid()))
	if err != nil {
		return u, err
	}
	// The name, in parentheses, may contain any character. The ticks of the children that were waited for are the 14th and 15th field
	// after the name.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0
	for _, f := range fields[13:15] {
		i, err := strconv.Atoi(f)
		if err != nil {
			return u, err
		}
		ticks += i
	}
	u.tree = u.own + time.Duration(ticks)*(time.Second/100)
	return u, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
