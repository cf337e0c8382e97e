package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) {
	testsupport.AtOnce(4)
	testsupport.Main(m)
}

// rig is the Redis of one test, with a connection of another client.
type rig struct {
	testsupport.Client
	redis *testsupport.Redis
}

func newRig(t testing.TB, opts ...testsupport.RedisOption) *rig {
	t.Helper()
	r := testsupport.StartRedis(t, opts...)
	return &rig{Client: r.Client(t), redis: r}
}

// master returns the Master for the server at an address.
func master(t testing.TB, url string) Master {
	t.Helper()
	s := redistest.Open(t, redisconn.Options{URL: url, ClientName: "baton-test"})
	all, err := s.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Master{Socket: all[0].Socket, Wait: 30 * time.Second}
}

// record stores the commands that a stream has delivered, as texts.
type record struct {
	mu       sync.Mutex
	commands []string
	at       Position
	came     chan struct{} // has room for one value
}

func newRecord() *record { return &record{came: make(chan struct{}, 1)} }

func (r *record) Command(db int, args [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := []string{fmt.Sprint(db)}
	for _, arg := range args {
		if arg == nil {
			texts = append(texts, "(long)")
			continue
		}
		texts = append(texts, string(arg))
	}
	r.commands = append(r.commands, strings.Join(texts, " "))
}

func (r *record) Reached(at Position) {
	r.mu.Lock()
	r.at = at
	r.mu.Unlock()
	select {
	case r.came <- struct{}{}:
	default:
	}
}

func (r *record) all() ([]string, Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.commands...), r.at
}

// await waits until the stream has delivered the command last, and removes all commands from the record.
func (r *record) await(t testing.TB, last string) (commands []string, at Position) {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		commands, at = r.all()
		if n := len(commands); n > 0 && commands[n-1] == last {
			r.mu.Lock()
			r.commands = nil
			r.mu.Unlock()
			return commands, at
		}
		select {
		case <-r.came:
		case <-limit:
			t.Fatalf("%q did not come; there is %.500q", last, commands)
		}
	}
}

// followed is a stream that a goroutine follows.
type followed struct {
	*record
	Joined
	t    testing.TB
	end  func() error // ends the stream, and returns the reason for its end
	wait func() error // waits until the stream has ended by itself
	done chan struct{}
}

// follow joins a stream and follows it until the test ends.
func follow(t testing.TB, m Master, from ...Position) *followed {
	t.Helper()
	s, joined, err := Join(t.Context(), m, from...)
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	return begin(t, s, joined)
}

// errGoesOn means that a stream has not ended, although it should have ended by itself.
var errGoesOn = errors.New("the stream is followed on")

func begin(t testing.TB, s *Stream, joined Joined) *followed {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	f := &followed{record: newRecord(), Joined: joined, t: t, done: done}
	go func() {
		defer close(done)
		err = s.Follow(ctx, f.record)
	}()
	f.end = func() error {
		cancel()
		<-done
		return err
	}
	t.Cleanup(func() { _ = f.end() })
	f.wait = func() error {
		select {
		case <-done:
			return err
		case <-time.After(time.Minute):
			return errGoesOn
		}
	}
	return f
}

func wants(t testing.TB, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("error %v; want %v with %q", err, want, text)
	}
}

func masterAs(t testing.TB, r *testsupport.Redis, user, password string) Master {
	t.Helper()
	s, err := redisconn.Open(redisconn.Options{
		URL: r.URL(), Username: user, Password: func() (string, error) { return password, nil }, ClientName: "baton-test",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	all, err := s.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Master{Socket: all[0].Socket, Wait: 30 * time.Second}
}
