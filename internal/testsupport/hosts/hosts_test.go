package hosts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport/hosts"
)

func TestMain(m *testing.M) { hosts.Main(m) }

func TestAHostKeepsItsDiskOverAPowerCutAndNothingElse(t *testing.T) {
	lab := hosts.New(t)
	began := time.Now()
	h := lab.Host("a")
	t.Logf("booted in %v", time.Since(began).Round(time.Millisecond))
	if name := h.Must("hostname"); name != "a\n" {
		t.Errorf("its name is %q", name)
	}
	h.Write("/etc/kept/note", "kept\n")
	h.Write("/run/lost", "lost\n")
	id := h.Must("cat", "/etc/machine-id")
	h.PowerCut()
	h.Boot()
	if note, ok := h.Read("/etc/kept/note"); !ok || note != "kept\n" {
		t.Errorf("a file is %q, %v after a power cut", note, ok)
	}
	if _, ok := h.Read("/run/lost"); ok {
		t.Error("memory has outlived a power cut")
	}
	if now := h.Must("cat", "/etc/machine-id"); now != id || len(strings.TrimSpace(id)) != 32 {
		t.Errorf("it was machine %q, and is %q", id, now)
	}
	h.Shutdown()
	h.Boot()
}

func TestAFrozenHostStandsStillAndGoesOn(t *testing.T) {
	lab := hosts.New(t)
	h := lab.Host("a")
	h.Must("systemd-run", "--unit=ticks", "sh", "-c", "while :; do echo >>/run/ticks; sleep 0.01; done")
	count := func() int { s, _ := h.Read("/run/ticks"); return len(s) }
	lab.Await("ticks", func() bool { return count() > 3 })
	h.Freeze()
	first := count() // a process that enters from outside is not frozen
	time.Sleep(100 * time.Millisecond)
	if now := count(); now != first {
		t.Errorf("a frozen host ticked %d times", now-first)
	}
	h.Thaw()
	lab.Await("ticks again", func() bool { return count() > first })
	h.Freeze()
	h.PowerCut()
}

func TestLinksBreakEachWayByThemselves(t *testing.T) {
	lab := hosts.New(t)
	server := lab.Redis("redis")
	conn := server.Conn()
	if _, err := conn.Do("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	took := func() time.Duration {
		t.Helper()
		began := time.Now()
		if _, err := conn.Do("GET", "k"); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	// A busy machine may make a single measurement longer, but not each of many, so the quickest one counts.
	takes := func(what string, least, most time.Duration) {
		t.Helper()
		quickest := time.Hour
		for range 20 {
			if quickest = min(quickest, took()); quickest <= most {
				break
			}
		}
		if quickest < least || quickest > most {
			t.Errorf("%s take %v", what, quickest)
		}
	}
	took()
	t.Logf("a round trip through the switch takes %v", took())
	lab.Net.Set(hosts.Tests, "redis", hosts.Way{Delay: 50 * time.Millisecond})
	takes("50 ms one way", 50*time.Millisecond, 90*time.Millisecond)
	lab.Net.Delay(hosts.Tests, "redis", 50*time.Millisecond, 20*time.Millisecond)
	takes("50 to 70 ms each way", 100*time.Millisecond, 190*time.Millisecond)
	lab.Net.Heal()
	if n := lab.Net.Traffic(hosts.Tests, "redis"); n.Delayed == 0 || n.Passed == 0 || n.Dropped > 0 {
		t.Errorf("packets that were delayed were counted as %+v", n)
	}
	// TCP compensates for the loss unless the share is so high that the same packet is lost again and again: TCP doubles the pause after
	// each attempt.
	lab.Net.Loss(hosts.Tests, hosts.Any, 0.1)
	for asked := 0; asked < 20 || asked < 1000 && lab.Net.Traffic(hosts.Tests, "redis").Dropped == 0; asked++ {
		took()
	}
	lab.Net.Heal()
	if n := lab.Net.Traffic(hosts.Tests, "redis"); n.Dropped == 0 {
		t.Errorf("packets that were lost were counted as %+v", n)
	}

	reaches := func(where string) bool {
		c, err := redis.Dial("tcp", server.Addr, redis.DialConnectTimeout(300*time.Millisecond))
		if err == nil {
			_ = c.Close()
		}
		t.Logf("%s: %v", where, err)
		return err == nil
	}
	lab.Net.Block(hosts.Tests, "redis")
	if reaches("blocked") {
		t.Error("a blocked way lets a connection through")
	}
	lab.Net.Heal(hosts.Tests)
	lab.Net.OneWay("redis", hosts.Tests)
	if reaches("replies lost") {
		t.Error("a way that is blocked one way lets a connection through")
	}
	lab.Net.Heal()
	if _, err := conn.Do("PING"); err != nil {
		t.Errorf("a connection did not outlive the faults: %v", err)
	}
	lab.Net.Unplug("redis")
	if reaches("unplugged") {
		t.Error("a cable that is out lets a connection through")
	}
	lab.Net.Plug("redis")
	if _, err := conn.Do("PING"); err != nil {
		t.Errorf("a connection did not outlive a cable that was out: %v", err)
	}
}

func TestServersKeepTheirData(t *testing.T) {
	lab := hosts.New(t)
	pg := lab.Postgres("db")
	pg.Exec("CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
	pg.Kill()
	pg.Start()
	if rows := pg.Rows("SELECT a::text FROM t"); len(rows) != 1 || rows[0] != "7" {
		t.Errorf("rows %v after a crash", rows)
	}
}
