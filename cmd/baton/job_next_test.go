package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/operate"
)

const nightly = `node: {id: n1}
jobs:
  - {name: report, schedule: "30 2 * * *", time_zone: Europe/Berlin, command: [/bin/report]}
  - {name: spread, schedule: "30 2 * * *", time_zone: Europe/Berlin, jitter: 10m, command: [/bin/report]}
  - {name: watch, schedule: "@always", command: [/bin/watch]}
`

func TestNextShowsTheSlotsInTheZoneOfTheJob(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", nightly)
	c.env["BATON_CONFIG"] = "a.yaml"
	c.want(cmdline.ExitOK, `report: at 02:30 every day (Europe/Berlin)
SLOT                         IN      NOTE
Sun 2027-03-28 03:00 +02:00  23h     the clock is put forward: 02:30 does not exist, runs at 03:00
Mon 2027-03-29 02:30 +02:00  46h30m
`, "", "job", "next", "report", "-n", "2", "--from", "2027-03-27 03:00")
	c.want(cmdline.ExitOK, `report: at 02:30 every day (Europe/Berlin)
SLOT                         IN
Mon 2027-03-29 02:30 +02:00  30m
`, "", "job", "next", "report", "-n", "1", "--from", "2027-03-29T00:00:00Z")
	c.want(cmdline.ExitOK, "watch: all the time while leading: it has no slots, and is started again whenever it ends\n", "", "job", "next", "watch")
}

func TestNextShowsWhenAJobWithJitterStarts(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", nightly)
	got := c.run("job", "next", "spread", "--config", "a.yaml", "-n", "3", "--from", "2026-12-01", "-o", "json")
	var coming operate.Coming
	if err := json.Unmarshal([]byte(got.stdout), &coming); err != nil || got.code != cmdline.ExitOK {
		t.Fatalf("%v: %+v", err, got)
	}
	offset := coming.Offset.Duration()
	if offset <= 0 || offset >= 10*time.Minute || len(coming.Next) != 3 || coming.TimeZone != "Europe/Berlin" {
		t.Fatalf("%+v", coming)
	}
	for i, s := range coming.Next {
		if s.Start.Sub(s.Slot) != offset || s.Slot.Format(time.DateTime) != []string{"2026-12-01 02:30:00", "2026-12-02 02:30:00", "2026-12-03 02:30:00"}[i] {
			t.Errorf("slot %d: %+v", i, s)
		}
	}
	got = c.run("job", "next", "spread", "--config", "a.yaml", "-n", "1", "--from", "2026-12-01")
	if lines := strings.Split(got.stdout, "\n"); !strings.Contains(lines[0], "by its jitter") || !strings.HasSuffix(lines[1], "STARTS") ||
		!strings.HasSuffix(lines[2], "  "+coming.Next[0].Start.Format("15:04:05.000")) {
		t.Errorf("%+v", got)
	}
}

func TestNextRefusesWhatItCannotShow(t *testing.T) {
	c := newCLI(t)
	c.file("a.yaml", nightly)
	c.env["BATON_CONFIG"] = "a.yaml"
	c.want(cmdline.ExitUsage, "", "baton: no such job: \"reprot\": did you mean report?\n", "job", "next", "reprot")
	c.want(cmdline.ExitUsage, "", "baton: no such job: \"backup\": the configuration has report, spread, watch: see baton job list\n", "job", "next", "backup")
	c.want(cmdline.ExitUsage, "", "baton: -n 0: must be from 1 to 1000\n", "job", "next", "report", "-n", "0")
	c.want(cmdline.ExitUsage, "", "baton: --from \"soon\" is no time: write 2027-03-28, \"2027-03-28 02:30\" or 2027-03-28T02:30:00+01:00\n", "job", "next", "report", "--from", "soon")
}
