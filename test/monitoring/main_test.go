// Package monitoring_test holds alert rules and dashboard against what a running node tells,
// and the node against what watches it.
package monitoring_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/daemon"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

const (
	rulesFile     = "../../deploy/prometheus/baton.rules.yml"
	rulesTestFile = "../../deploy/prometheus/baton.rules_test.yml"
	scrapeFile    = "../../deploy/prometheus/scrape.yml"
	dashboardFile = "../../deploy/grafana/baton.json"
	runbookFile   = "../../docs/how-to/runbook.md"
)

// promtool runs Prometheus' own tool, which Debian's package prometheus has.
func promtool(t *testing.T, stdin io.Reader, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Fatal("this test needs promtool: run scripts/test-deps")
	}
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs a node with an environment of NAME=VALUE until the test ends, and returns where it answers.
func start(t *testing.T, c config.Config, env ...string) string {
	t.Helper()
	c.HTTP.Listen = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(context.Background())
	getenv := func(name string) (string, bool) {
		for _, v := range env {
			if value, is := strings.CutPrefix(v, name+"="); is {
				return value, true
			}
		}
		return "", false
	}
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- daemon.Run(ctx, c.WithDefaults(), daemon.Options{
			Version: "test", Logger: zap.NewNop(), Getenv: getenv,
			Exit: func(int) { panic("the daemon wants to exit") }, Ready: func(address string) { ready <- address },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the daemon ended: %v", err)
		}
	})
	select {
	case address := <-ready:
		return "http://" + address
	case err := <-ended:
		ended <- nil
		t.Fatalf("the daemon ended before it was ready: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the daemon is not ready")
	}
	return ""
}

// scrape returns what /metrics shows, and its series by name and labels.
func scrape(t *testing.T, address string) (text []byte, series map[string]string) {
	t.Helper()
	text, series, err := scraped(address)
	if err != nil {
		t.Fatal(err)
	}
	return text, series
}

// scraped is scrape for a goroutine that is not the test's.
func scraped(address string) (text []byte, series map[string]string, err error) {
	resp, err := http.Get(address + "/metrics")
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("/metrics: %s, %w", resp.Status, err)
	}
	series = map[string]string{}
	for line := range bytes.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(string(line)), "} "); ok {
			series[name+"}"] = value
		} else if name, value, ok := strings.Cut(strings.TrimSpace(string(line)), " "); ok && name != "#" {
			series[name] = value
		}
	}
	return text, series, nil
}

var labelName = regexp.MustCompile(`([a-z_]+)="`)

// labelsOf are the labels of each metric, buckets, sums and counts by their own names.
func labelsOf(series map[string]string) map[string]map[string]bool {
	labels := map[string]map[string]bool{}
	for s := range series {
		name, rest, _ := strings.Cut(s, "{")
		if labels[name] == nil {
			labels[name] = map[string]bool{}
		}
		for _, m := range labelName.FindAllStringSubmatch(rest, -1) {
			labels[name][m[1]] = true
		}
	}
	return labels
}

// flushing is a node with a Redis, a database and flush jobs of those names.
func flushing(t *testing.T, schedule string, jobs ...string) (config.Config, *testsupport.Redis) {
	t.Helper()
	server, db := testsupport.StartRedis(t), testsupport.SQLite(t)
	c := config.Default()
	c.Node.ID, c.Redis.URL = "a", server.URL()
	c.Databases = map[string]config.Database{"main": {Driver: db.Driver, DSNInline: db.DSN}}
	for _, name := range jobs {
		c.Jobs = append(c.Jobs, config.Job{Name: name, Schedule: schedule, Flush: config.Flush{
			From: config.From{Type: spec.Counters, Key: name}, To: config.To{Database: "main", Table: name, Key: []string{"id"}},
			Columns: map[string]config.Column{"id": {From: "$field"}, "views": {From: "$value", Op: "add"}},
		}})
		db.Exec(t, `CREATE TABLE "`+name+`" (id TEXT PRIMARY KEY, views INTEGER NOT NULL)`)
	}
	return c, server
}
