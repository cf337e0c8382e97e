package demo

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"baton/internal/config"
)

// screenOf returns a screen with three nodes: one node leads, one is a standby, one is down.
func screenOf(t *testing.T, width, height int) (*view, *strings.Builder) {
	t.Helper()
	var out strings.Builder
	f := &fleet{}
	for i, id := range []string{"node-1", "node-2", "node-3"} {
		n := &node{id: id, dir: "/tmp/baton-demo-1234567890", state: nodeRunning, began: i + 1, config: config.Config{HTTP: config.HTTP{Listen: "127.0.0.1:40001"}}}
		n.cmd = &exec.Cmd{Process: &os.Process{Pid: 4001 + i}}
		f.nodes = append(f.nodes, n)
	}
	f.nodes[2].cmd, f.nodes[2].state = nil, nodeDown
	d := &eventLog{}
	for range 20 {
		d.note("node-1: won, %s", strings.Repeat("with a very long reason ", 10))
	}
	w := newWatcher(nil, d)
	w.saw(moment{owner: "A", node: "node-1", epoch: 42, left: time.Second}, time.Now())
	return &view{
		scene: syncScene(), options: Options{Program: "/usr/bin/baton", Screen: &Screen{Writer: &out, Size: func() (int, int) { return width, height }}},
		server: &server{what: "embedded, redis://127.0.0.1:40000/0"}, database: &database{what: "SQLite, /tmp/baton-demo-1234567890/demo.db"},
		fleet: f, watcher: w, gauge: &gauge{naive: &naiveFleet{}}, events: d, started: time.Now(), phase: func() string { return phaseRunning },
	}, &out
}

func TestScreenTellsWhoLeadsAndHowToKillIt(t *testing.T) {
	v, out := screenOf(t, 100, 40)
	v.frame()
	for _, want := range []string{
		"node-1 (1st start) leads   term 1   lease left [#####.....] 1.0 s", "kill -9 4001 ", "kill -STOP 4001 ",
		"node-2   standby      2nd     4002  http://127.0.0.1:40001/", "node-3   down         3rd        -",
		"export BATON_CONFIG=/tmp/baton-demo-1234567890/node-1.yaml", "node-1: won",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}

	v.options.Keys = strings.NewReader("")
	v.gauge.now.naive = damage{lost: 1234, twice: 5}
	out.Reset()
	v.frame()
	for _, want := range []string{"k kill the leader   f freeze it 3s   s step down   r cut Redis 3s   q end", "1,234        5"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("with keys: no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out.String(), "kill -9") {
		t.Errorf("both ways are named\n%s", out)
	}
	v.options.Keys = nil

	v.fleet.nodes[0].state = nodeFrozen
	out.Reset()
	v.frame()
	for _, want := range []string{"node-1 (1st start) is frozen   term 1   lease left", "kill -CONT 4001 ", "kill -9 PID"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("frozen: no %q in\n%s", want, out)
		}
	}

	v.watcher.saw(moment{epoch: 42}, time.Now())
	v.gauge.now.trouble = errors.New("closed for lunch")
	out.Reset()
	v.frame()
	for _, want := range []string{"No node leads; the last term was the 1st", "The database does not answer: closed for lunch"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	v.watcher.setTrouble(errors.New("connection refused"))
	out.Reset()
	v.frame()
	if !strings.Contains(out.String(), "Redis does not answer: connection refused") {
		t.Errorf("%s", out)
	}
}

func TestScreenFitsTheTerminal(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {100, 40}, {40, 12}, {20, 2}, {80, 0}} {
		v, out := screenOf(t, size[0], size[1])
		v.frame()
		text := strings.NewReplacer("\x1b[H", "", "\x1b[K", "", "\x1b[J", "").Replace(out.String())
		lines := strings.Split(text, "\r\n")
		if len(lines) > max(size[1], 1) {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if utf8.RuneCountInString(l) > size[0] {
				t.Errorf("%v: %q", size, l)
			}
		}
		if size == [2]int{80, 24} && (!strings.Contains(text, "stepdown") || !strings.Contains(text, "won")) {
			t.Errorf("an ordinary terminal does not show all of it:\n%s", text)
		}
	}
}

func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	if got := crop("a\x1b[2J\r\nb", 80); got != "a [2J  b" {
		t.Errorf("%q", got)
	}
}
