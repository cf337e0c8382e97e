package monitoring_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

type rule struct {
	Record      string
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(read(t, rulesFile), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 25 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

func TestAlertsFireWhenTheyShouldAndNotOtherwise(t *testing.T) {
	t.Parallel()
	promtool(t, nil, "check", "rules", rulesFile)
	promtool(t, nil, "test", "rules", rulesTestFile)
	tests := string(read(t, rulesTestFile))
	for _, r := range rules(t) {
		if r.Alert != "" && !strings.Contains(tests, fmt.Sprintf(`alertname="%s"`, r.Alert)) {
			t.Errorf("no test shows that %s fires", r.Alert)
		}
	}
}

func TestAnAlertSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	runbook := string(read(t, runbookFile))
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" && s != "info" {
			t.Errorf("%s has the severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || len(r.Annotations["description"]) < 60 {
			t.Errorf("%s does not say what it is about", r.Alert)
		}
		path, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
		if path != "docs/how-to/runbook.md" || !regexp.MustCompile(`(?mi)^#+ `+anchor+`$`).MatchString(runbook) {
			t.Errorf("%s: nothing is at %s#%s", r.Alert, path, anchor)
		}
	}
}

// The shipped scrape configuration is one that Prometheus takes, and that keeps baton's
// own job label.
func TestTheScrapeConfigurationIsTaken(t *testing.T) {
	t.Parallel()
	scrapes := string(read(t, scrapeFile))
	if !strings.Contains(scrapes, "\n  honor_labels: true\n") || !strings.Contains(scrapes, "- job_name: baton\n") {
		t.Error("without honor_labels, or of another name than the alerts ask for")
	}
	path, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, nil, "check", "config", write(t, "prometheus.yml", "rule_files: ["+path+"]\nscrape_configs:\n"+scrapes))
}
