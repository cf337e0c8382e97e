package demo

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestReportIsTheDocumentedObject(t *testing.T) {
	r := Report{
		Seed: 9, Duration: 30, Written: amount{12, 5}, Flushed: amount{11, 5}, Lost: 1, Terms: 3,
		Failover: summarize([]time.Duration{3 * time.Second, time.Second, 2 * time.Second, 1500 * time.Millisecond}),
	}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"seed":9,"duration_seconds":30,"written":{"counters":12,"hashes":5},"flushed":{"counters":11,"hashes":5},` +
		`"lost":1,"duplicated":0,"terms":3,"failover_seconds":{"count":4,"p50":1.5,"max":3},"faults":{"killed":0,"frozen":0},"node_exits":0}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, _ := json.Marshal(summarize(nil)); string(got) != `{"count":0,"p50":null,"max":null}` {
		t.Errorf("without a failover: %s", got)
	}
}

func TestReportForPeopleSaysTheVerdict(t *testing.T) {
	clean := Report{Written: amount{1_234_567, 89}, Failover: summarize([]time.Duration{time.Second})}
	bad := Report{Lost: 2, Findings: []string{"article 1: gone"}, Kept: "/tmp/x"}
	for _, c := range []struct {
		report Report
		want   []string
	}{
		{clean, []string{"1,234,567 increments", "nothing lost, nothing twice", "1.000 s p50, 1.000 s max, of 1"}},
		{bad, []string{"DIFFERS", "article 1: gone", "/tmp/x"}},
	} {
		var b strings.Builder
		if err := c.report.Print(&b); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %q in\n%s", want, b.String())
			}
		}
		for line := range strings.Lines(b.String()) {
			if len(line) > 80 {
				t.Errorf("too wide for a terminal: %q", line)
			}
		}
	}
	if bad.Clean() || !clean.Clean() || (Report{Duplicated: 1}).Clean() {
		t.Error("Clean is wrong")
	}
}

func TestNumbersAreGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 12345678: "12,345,678"} {
		if got := group(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
