package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// These are the settings of the trial that measures the cost of an undisturbed election.
const (
	standbys = 10
	settle   = 5 * time.Second
	// watching is long enough that events with an interval of 15 or 30 s happen as often as on average.
	watching = 30 * time.Second
)

// cost is the cost of one leader and its standbys.
type cost struct {
	inRedis  float64            // commands per second that Redis executed, including the commands of scripts
	sent     float64            // commands per second that clients sent
	sentBy   map[string]float64 // by name
	servedBy map[string]float64
	cpu      time.Duration // of all processes, per second
	redisCPU time.Duration // a second
	memoryMB float64       // resident, median of the processes
}

// idle measures an undisturbed election.
func idle(ctx context.Context, l *lab, _ int, o *outcome) (err error) {
	conn, err := l.redis.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := l.await(ctx, "somebody leads", func() bool {
		var keys int
		keys, err = redis.Int(conn.Do("DBSIZE"))
		return keys > 0 || err != nil
	}); err != nil {
		return err
	}
	pause(ctx, settle)
	m, err := rig.StartMonitor(l.redis.Dial)
	if err != nil {
		return err
	}
	before, err := l.usage(conn)
	if err != nil {
		return errors.Join(err, m.Stop())
	}
	pause(ctx, watching)
	after, err := l.usage(conn)
	if err := errors.Join(err, m.Stop()); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	seconds := watching.Seconds()
	o.cost = cost{
		servedBy: map[string]float64{}, sentBy: perSecond(m.Sent, seconds),
		cpu: (after.cpu - before.cpu) / time.Duration(seconds), redisCPU: (after.redisCPU - before.redisCPU) / time.Duration(seconds),
		memoryMB: after.memoryMB,
	}
	for name, n := range after.served {
		if name == "info" {
			n-- // the first of our own two INFO commands; the answer to the second does not count the second
		}
		if more := n - before.served[name]; more > 0 {
			o.cost.servedBy[name] = float64(more) / seconds
			o.cost.inRedis += float64(more) / seconds
		}
	}
	for _, n := range o.cost.sentBy {
		o.cost.sent += n
	}
	return nil
}

// usage is what the processes and Redis have used so far.
type usage struct {
	served   map[string]int64
	cpu      time.Duration
	redisCPU time.Duration
	memoryMB float64
}

func (l *lab) usage(conn redis.Conn) (u usage, err error) {
	info, err := redis.String(conn.Do("INFO", "commandstats"))
	if err != nil {
		return u, err
	}
	if u.served, err = commandStats(info); err != nil {
		return u, err
	}
	if u.redisCPU, err = rig.CPU(l.redis.Pid()); err != nil {
		return u, err
	}
	var memory []float64
	for _, p := range l.nodes {
		used, err := rig.CPU(p.Pid())
		if err != nil {
			return u, err
		}
		resident, err := rig.ResidentMB(p.Pid())
		if err != nil {
			return u, err
		}
		u.cpu += used
		memory = append(memory, resident)
	}
	slices.Sort(memory)
	u.memoryMB = memory[len(memory)/2]
	return u, nil
}

// commandStats reads how often each command was executed.
func commandStats(info string) (map[string]int64, error) {
	stats := map[string]int64{}
	for line := range strings.Lines(info) {
		name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !found {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("INFO commandstats: %q: %w", line, err)
		}
		stats[name] = n
	}
	return stats, nil
}

func perSecond(counts map[string]int, seconds float64) map[string]float64 {
	each := map[string]float64{}
	for name, n := range counts {
		each[name] = float64(n) / seconds
	}
	return each
}

// most lists the names with their rates, the highest rate first.
func most(rates map[string]float64) string {
	names := make([]string, 0, len(rates))
	for name := range rates {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if rates[a] != rates[b] {
			return int(min(max((rates[b]-rates[a])*1e6, -1), 1))
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.2f", name, rates[name]))
	}
	return strings.Join(parts, ", ")
}
