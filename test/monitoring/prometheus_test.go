package monitoring_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
	"baton/internal/testsupport/collector"
)

// TestEveryPanelShowsDataOfARealPrometheus scrapes a node as deploy/ says, with a real Prometheus and
// the shipped rules, and asks it what Grafana would ask. A panel must show something.
func TestEveryPanelShowsDataOfARealPrometheus(t *testing.T) {
	c, server := flushing(t, "@every 1s", "views", "people", "carts")
	c.Jobs[1].Flush.From = config.From{Type: spec.Hashes, Key: "person:<id>", Changed: "changed:person"}
	c.Jobs[1].Flush.Columns = map[string]config.Column{"id": {From: "id"}, "views": {From: "views"}}
	c.Jobs[1].Flush.Verify.Schedule = "@every 1s"
	c.Jobs[2].Schedule = "@always"
	c.Jobs[2].Flush.From = config.From{Type: spec.Capture, Key: "cart:<id>"}
	c.Jobs[2].Flush.Columns = map[string]config.Column{"id": {From: "id"}, "views": {From: "views"}}
	c.Notify = []config.Notify{{Name: "ops", On: []string{"failed"}, Command: []string{"/bin/true"}}}
	broken := filepath.Join(t.TempDir(), "broken")
	c.Jobs = append(c.Jobs, // some panels show what is wrong only
		config.Job{Name: "fails", Schedule: "@every 1s", Command: config.Command{"/usr/bin/test", "!", "-e", broken}},
		config.Job{Name: "slow", Schedule: "@every 1s", Command: config.Command{"/bin/sleep", "3"}})
	c.Stores = map[string]config.Store{"shop": {URL: server.URL()}}
	c.Jobs[0].Flush.From.Store = "shop"
	prom := startPrometheus(t, start(t, c, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.Start(t).URL, "OTEL_BSP_SCHEDULE_DELAY=100"))
	stop := writes(t, server.Conn(), []string{"views"})
	defer stop()

	d := theDashboard(t)
	queries := d.queries()
	testsupport.Await(t, "a scrape", func() bool { return prom.ask(t, "a scrape", "baton_notifications_total") > 0 })
	if err := os.WriteFile(broken, nil, 0o600); err != nil { // an increase shows from the second scrape on
		t.Fatal(err)
	}
	var last string
	testsupport.Await(t, "data in every panel", func() bool {
		left := strings.Join(d.empty(t, prom, queries), "; ")
		if left != last {
			t.Logf("no data yet: %s", left)
			last = left
		}
		return left == ""
	})
	for where, q := range queries { // those that have nothing to show are taken as well
		prom.ask(t, where, q)
	}
}

// empty are the panels none of whose queries has a result.
func (d dashboard) empty(t *testing.T, prom prometheus, queries map[string]string) (titles []string) {
	t.Helper()
	for _, p := range d.Panels {
		shows := len(p.Targets) == 0 // a heading
		for i := range p.Targets {
			where := fmt.Sprintf("%s, %c", p.Title, 'A'+i)
			shows = shows || prom.ask(t, where, queries[where]) > 0
		}
		if !shows {
			titles = append(titles, p.Title)
		}
	}
	slices.Sort(titles)
	return titles
}

// prometheus is the address of a running one.
type prometheus string

// ask returns how many series the answer to a query has.
func (p prometheus) ask(t *testing.T, where, query string) int {
	t.Helper()
	resp, err := http.Get(string(p) + "/api/v1/query?" + url.Values{"query": {query}}.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s, %v: %s", where, resp.Status, answer.Error, err, query)
	}
	return len(answer.Data.Result)
}

var prometheusListens = regexp.MustCompile(`Listening on.*address=(127\.0\.0\.1:\d+)`)

// startPrometheus runs one that scrapes the node every second, until the test ends.
func startPrometheus(t *testing.T, node string) prometheus {
	t.Helper()
	scrape := string(read(t, scrapeFile))
	for from, to := range map[string]string{
		`["db1:9747", "db2:9747", "db3:9747"]`: "[" + strings.TrimPrefix(node, "http://") + "]",
		"scrape_interval: 15s":                 "scrape_interval: 1s",
	} {
		if !strings.Contains(scrape, from) {
			t.Fatalf("%s has no %s", scrapeFile, from)
		}
		scrape = strings.ReplaceAll(scrape, from, to)
	}
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, "prometheus.yml", fmt.Sprintf("global: {evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n%s", rules, scrape))
	cmd := exec.Command("prometheus", "--config.file="+file, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address=127.0.0.1:0")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("this test needs prometheus: run scripts/test-deps: %v", err)
	}
	listens := make(chan string, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer close(listens)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if m := prometheusListens.FindStringSubmatch(lines.Text()); m != nil {
				listens <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop prometheus: %v", err)
		}
		<-drained
		if err := cmd.Wait(); err != nil {
			t.Errorf("prometheus: %v", err)
		}
	})
	address, ok := <-listens
	if !ok {
		t.Fatal("prometheus ended before it listened")
	}
	testsupport.Await(t, "prometheus", func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return prometheus("http://" + address)
}
