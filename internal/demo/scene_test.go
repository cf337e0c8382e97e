package demo

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
)

func TestNothingIsLostOfAnApplicationThatKnowsNothingOfBaton(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	o.Scene, o.Chaos, o.Seed = sceneCapture, ttl+500*time.Millisecond, 3 // with this seed the first leader is killed, the next frozen
	mustBeClean(t, o, log, killed, frozen)
}

func TestCaptureSceneNeedsARealRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), Options{Program: "/bin/false", TempDir: t.TempDir(), Log: io.Discard, Scene: sceneCapture})
	if !errors.Is(err, errNoServer) {
		t.Errorf("%v", err)
	}
}

// Each key must have the effect that the line of keys promises, the nodes must continue afterwards, and q must end the traffic.
func TestKeysDisturbTheNodes(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	keys, press := io.Pipe()
	defer press.Close()
	o.Keys = keys
	ended := make(chan error, 1)
	var report Report
	go func() {
		var err error
		report, err = Run(t.Context(), o)
		ended <- err
	}()
	for _, step := range []struct{ key, told string }{
		{"", "won, term 1"}, {"k", killed}, {"", "won, term 2"}, {"f", frozen}, {"", "won, term 3"}, {"", "goes on"},
		{"s", "stepped down"}, {"", "won, term 4"}, {"r", "cut off from Redis"}, {"", "reach Redis again"}, {"", "won, term 5"},
	} {
		pressed, last := 0, time.Now()
		already := strings.Count(log.String(), "press the key again")
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if strings.Contains(log.String(), step.told) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %q after key %q\n%s", step.told, step.key, log)
			}
			refused := strings.Count(log.String(), "press the key again") - already // at that moment no node led
			// If the lease ends at that moment because the machine is busy, the leader cannot step down, because it has lost the lock.
			if step.key != "" && (pressed == 0 || refused == pressed || time.Since(last) > 10*time.Second) {
				pressed, last = pressed+1, time.Now()
				if _, err := press.Write([]byte(step.key)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := press.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || !report.Clean() {
		t.Errorf("%v, %+v\n%s", err, report, log)
	}
}

// The naive leader must get the same faults as the leader of the nodes, because otherwise the comparison would be unfair.
func TestNaiveLeaderHasTheSameFaults(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	o.NoNaive, o.Chaos, o.Seed = false, ttl+500*time.Millisecond, 3
	report := mustBeClean(t, o, log, killed, frozen, "gets the same signal: killed", "gets the same signal: stopped (signal)")
	if report.Naive == nil {
		t.Error("it was not audited")
	}
}

func TestRelayCutsAndPasses(t *testing.T) {
	t.Parallel()
	r := testsupport.StartRedis(t)
	way, err := newRelay(r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer way.close()
	ask := func() error {
		c, err := net.Dial("tcp", way.addr())
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return err
		}
		got := make([]byte, 7)
		if _, err := io.ReadFull(c, got); err != nil {
			return err
		}
		if !bytes.Equal(got, []byte("+PONG\r\n")) {
			t.Errorf("%q", got)
		}
		return nil
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	open, err := net.Dial("tcp", way.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	way.setCut(true)
	if err := ask(); err == nil {
		t.Error("a way that is cut lets through")
	}
	if _, err := open.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an open connection: %v", err)
	}
	way.setCut(false)
	if err := ask(); err != nil {
		t.Error(err)
	}
}
