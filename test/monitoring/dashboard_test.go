package monitoring_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/flush/source/spec"
	"baton/internal/testsupport"
)

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
}

type dashboard struct {
	Panels      []panel
	Annotations struct{ List []struct{ Expr string } }
	Templating  struct {
		List []struct{ Name, Type, Definition string }
	}
}

func theDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, dashboardFile), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Panels) < 20 {
		t.Fatalf("%d panels", len(d.Panels))
	}
	return d
}

// queries are all that the dashboard asks for, as Prometheus gets it, by where they stand.
func (d dashboard) queries() map[string]string {
	all := map[string]string{}
	for _, p := range d.Panels {
		for i, target := range p.Targets {
			all[fmt.Sprintf("%s, %c", p.Title, 'A'+i)] = target.Expr
		}
	}
	for _, a := range d.Annotations.List {
		all["annotation"] = a.Expr
	}
	for where, q := range all {
		q = strings.NewReplacer("$__rate_interval", "5m", "$lock", ".*", "$job", ".*", "$cluster", ".*").Replace(q)
		all[where] = q
	}
	return all
}

func TestPanelsSayWhatTheyShow(t *testing.T) {
	ids, boxes := map[int]bool{}, []panel{}
	for _, p := range theDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("%q has the id of another panel", p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || len(p.Description) < 12 || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d, %q, lacks a description, a unit or a query", p.ID, p.Title)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%q is wider than the page", p.Title)
		}
		for _, b := range boxes {
			if g, h := p.GridPos, b.GridPos; g.X < h.X+h.W && h.X < g.X+g.W && g.Y < h.Y+h.H && h.Y < g.Y+g.H {
				t.Errorf("%q lies on %q", p.Title, b.Title)
			}
		}
		boxes = append(boxes, p)
	}
}

func TestQueriesOfTheDashboardParse(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	file.WriteString("groups: [{name: dashboard, rules: [\n")
	for where, q := range theDashboard(t).queries() {
		if strings.Contains(q, "$") {
			t.Errorf("%s has a variable that nobody sets: %s", where, q)
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		// Each with a label of its own: recordings must differ.
		fmt.Fprintf(&file, "{record: 'd:x', labels: {at: %q}, expr: %s},\n", where, text)
	}
	file.WriteString("]}]\n")
	promtool(t, nil, "check", "rules", write(t, "dashboard.yml", file.String()))
}

var (
	usedMetric = regexp.MustCompile(`\b((?:baton|process|go)_[a-z_]+)\b(\{[^}]*\})?`)
	usedLabel  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
)

// target are the labels that the scrape adds.
func target() []string { return []string{"instance", "cluster", "exported_job"} }

// TestWhatIsAskedForIsTold holds every metric and every label that alerts and panels use
// against a running node's.
func TestWhatIsAskedForIsTold(t *testing.T) {
	c, server := flushing(t, "@every 1s", "views", "people", "carts")
	c.Jobs[1].Flush.From = config.From{Type: spec.Hashes, Key: "person:<id>", Changed: "changed:person"}
	c.Jobs[1].Flush.Columns = map[string]config.Column{"id": {From: "id"}, "views": {From: "views"}}
	c.Jobs[1].Flush.Verify.Schedule = "@every 1s"
	c.Notify = []config.Notify{{Name: "ops", On: []string{"failed"}, Command: []string{"/bin/true"}}}
	c.Stores = map[string]config.Store{"shop": {URL: server.URL()}}
	c.Jobs[0].Flush.From.Store = "shop"
	c.Jobs[2].Schedule = "@always"
	c.Jobs[2].Flush.From = config.From{Type: spec.Capture, Key: "cart:<id>"}
	c.Jobs[2].Flush.Columns = map[string]config.Column{"id": {From: "id"}, "views": {From: "views"}}
	address := start(t, c)
	server.Client(t).Do("HSET", "views", "1", "2")
	var text []byte
	var series map[string]string
	testsupport.Await(t, "a flush", func() bool {
		text, series = scrape(t, address)
		return series[`baton_flush_rows_total{job="views",outcome="written"}`] == "1" &&
			series[`baton_verify_rows{job="people",result="compared"}`] == "0" &&
			series[`baton_capture_lag_bytes{job="carts",master="`+server.Addr()+`"}`] != "" &&
			series[`baton_capture_passes_ended_total{job="carts",result="complete"}`] == "1"
	})
	promtool(t, bytes.NewReader(text), "check", "metrics")

	told := labelsOf(series)
	d := theDashboard(t)
	asked := d.queries()
	for _, r := range rules(t) {
		asked[r.Alert+r.Record] = r.Expr
	}
	for _, v := range d.Templating.List {
		if of := regexp.MustCompile(`label_values\((\w+), (\w+)\)`).FindStringSubmatch(v.Definition); of != nil {
			asked["variable "+v.Name] = of[1] + "{" + of[2] + `=~".*"}`
		}
	}
	used := map[string]bool{}
	for where, q := range asked {
		of := target()
		for _, m := range usedMetric.FindAllStringSubmatch(q, -1) {
			used[m[1]] = true
			labels := told[m[1]]
			if labels == nil {
				t.Errorf("%s asks for %s, which is not told", where, m[1])
			}
			mine := target()
			for l := range labels {
				mine = append(mine, l)
			}
			if !strings.HasPrefix(m[1], "baton_") {
				mine = append(mine, "job") // the scrape's
			}
			for _, l := range usedLabel.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(mine, l[1]) {
					t.Errorf("%s asks %s for the label %s, which it does not have", where, m[1], l[1])
				}
			}
			of = append(of, mine...)
		}
		if strings.Contains(q, "baton:") || strings.Contains(q, "up{") {
			continue // its labels are those of the recording, which is checked itself
		}
		for _, g := range grouping.FindAllStringSubmatch(q, -1) {
			for l := range strings.SplitSeq(g[1], ",") {
				if l = strings.TrimSpace(l); l != "" && !slices.Contains(of, l) {
					t.Errorf("%s groups by %s, which nothing in it has", where, l)
				}
			}
		}
	}
	for name := range told {
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if strings.HasPrefix(name, "baton_") && !slices.ContainsFunc([]string{name, base + "_bucket", base + "_sum", base + "_count", base}, func(n string) bool { return used[n] }) {
			t.Errorf("%s is told, and no alert and no panel uses it", name)
		}
	}
}
