package scale

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// The steps of a handover, in their order.
const (
	freed   = iota // the lock was given up
	won            // another node has it
	claimed        // it asks for its first run
	acted          // the command has begun, or the flush asks for its data
	steps
)

// handover notes when Redis and the job came to each step, by this machine's clock.
type handover struct {
	mu   sync.Mutex
	at   [steps]time.Time
	done chan struct{} // has room for one
}

// note notes a step, once, and if the one before was taken.
func (h *handover) note(step int, when time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at[step].IsZero() || step > 0 && h.at[step-1].IsZero() {
		return
	}
	if h.at[step] = when; step == acted {
		h.done <- struct{}{}
	}
}

// monitor notes what Redis does. A line is `1700000000.123456 [0 lua] "set" "baton" …`.
func (h *handover) monitor(t testing.TB, server *testsupport.Redis, stepOf func(words string) (step int, ok bool)) {
	conn := server.Conn()
	if err := conn.Send("MONITOR"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			reply, err := conn.Receive()
			if err != nil {
				return // the benchmark is over
			}
			line, _ := reply.(string)
			stamp, rest, _ := strings.Cut(line, " ")
			_, words, _ := strings.Cut(rest, "] ")
			seconds, err := strconv.ParseFloat(stamp, 64)
			if err != nil {
				continue
			}
			if step, ok := stepOf(strings.ToLower(words)); ok {
				h.note(step, time.UnixMicro(int64(seconds*1e6)))
			}
		}
	}()
}

// stepOf finds the steps of every job among the commands.
func stepOf(words string) (int, bool) {
	switch {
	case strings.HasPrefix(words, `"del" "baton"`):
		return freed, true
	case strings.HasPrefix(words, `"set" "baton"`):
		return won, true
	case strings.HasPrefix(words, `"hset" "{baton}:job:works" "run:`):
		return claimed, true
	case strings.HasPrefix(words, `"evalsha"`) && strings.Contains(words, `"inbox"`):
		return acted, true
	}
	return 0, false
}

// The leader is stopped in order and another one acts: from when Redis gave the lock up until
// it was won, and from then until the first run is claimed, and until a command has begun (its
// first words are read), or a flush asks for its data, after it has taken its fence in the
// database. HANDOVERS is how many, SCALE_PROGRAM another build:
// go test -run xxx -bench Handover -benchtime 1x ./test/scale
func BenchmarkHandover(b *testing.B) {
	b.Run("command", func(b *testing.B) {
		pipe := filepath.Join(b.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			b.Fatal(err)
		}
		f, err := os.OpenFile(pipe, os.O_RDWR, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = f.Close() })
		h := &handover{done: make(chan struct{}, 1)}
		go func() {
			for lines := bufio.NewScanner(f); lines.Scan(); {
				h.note(acted, time.Now())
			}
		}()
		h.repeat(b, cluster.Options{JobsYAML: fmt.Sprintf("- {name: works, schedule: \"@always\", shell: true, command: \"echo > %s; exec sleep 1000\"}\n", pipe)})
	})
	b.Run("flush", func(b *testing.B) {
		db := testsupport.SQLite(b)
		db.Exec(b, "CREATE TABLE inbox (id VARCHAR(40) PRIMARY KEY, n BIGINT)")
		h := &handover{done: make(chan struct{}, 1)}
		h.repeat(b, cluster.Options{DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: `- name: works
  schedule: "@always"
  flush:
    from: {type: stream, key: inbox}
    to: {database: main, table: inbox}
    columns: {id: id, n: n}
`})
	})
}

func (h *handover) repeat(b *testing.B, o cluster.Options) {
	server := testsupport.StartRedis(b)
	h.monitor(b, server, stepOf)
	o.Nodes, o.TTL, o.LockKey, o.RedisURL, o.Program = 2, 3*time.Second, "baton", server.URL(), os.Getenv("SCALE_PROGRAM")
	c := cluster.Start(b, o)
	var took [steps][]float64 // ms since the step before; of the last one since the lock was won
	for range scaled(b, "HANDOVERS", 20) {
		leader := c.AwaitLeader(time.Minute)
		time.Sleep(o.TTL)
		h.mu.Lock()
		h.at = [steps]time.Time{}
		h.mu.Unlock()
		leader.Terminate(time.Minute)
		select {
		case <-h.done:
		case <-time.After(time.Minute):
			b.Fatal("nobody acts")
		}
		for step, since := range map[int]int{won: freed, claimed: won, acted: won} {
			took[step] = append(took[step], h.at[step].Sub(h.at[since]).Seconds()*1000)
		}
		leader.Start()
	}
	for step, name := range map[int]string{won: "free", claimed: "won-to-claim", acted: "won-to-act"} {
		slices.Sort(took[step])
		n := len(took[step])
		b.ReportMetric(took[step][n/2], name+"-ms-p50")
		b.ReportMetric(took[step][n*19/20], name+"-ms-p95")
	}
}
