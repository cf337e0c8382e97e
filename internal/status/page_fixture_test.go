package status

import (
	"context"
	"fmt"
	"math"
	"time"

	"baton/internal/operate"
)

// shelf is a node that answers what a test has put there.
type shelf struct {
	operate.Node // answers nothing else
	events       []Event
	entries      []operate.Entry
	output       operate.Printed
	letters      []operate.Letter
	samples      []operate.Sample
	asked        func(string)

	lettersErr error
}

func (s *shelf) tell(what string) {
	if s.asked != nil {
		s.asked(what)
	}
}

func (s *shelf) History(_ context.Context, _, before string, n int) ([]operate.Entry, error) {
	s.tell("history")
	from := 0
	for i, e := range s.entries {
		if before != "" && e.ID >= before { // all have as many digits
			from = i + 1
		}
	}
	return s.entries[from:min(from+n, len(s.entries))], nil
}

func (s *shelf) Events(_ context.Context, n int) ([]Event, error) {
	return s.events[:min(n, len(s.events))], nil
}

func (s *shelf) Printed(context.Context, string, string) (operate.Printed, error) {
	s.tell("output")
	return s.output, nil
}

func (s *shelf) Letters(_ context.Context, _ operate.LetterFilter, n int) ([]operate.Letter, error) {
	s.tell("letters")
	return s.letters[:min(n, len(s.letters))], s.lettersErr
}

func (s *shelf) Samples(context.Context, time.Time) ([]operate.Sample, error) {
	s.tell("samples")
	return s.samples, nil
}

// large is an installation of that many jobs, nodes and history entries, with an hour of samples.
func large(now time.Time, jobs, nodes, entries int) (Snapshot, *shelf) {
	s := sample(now)
	s.Jobs, s.Nodes, s.Events = nil, nil, nil
	for i := range jobs {
		name := fmt.Sprintf("orders-of-region-%03d", i)
		s.Jobs = append(s.Jobs, Job{
			Name: name, Schedule: "@every 5s", ScheduleWords: "every 5 seconds", TimeZone: "UTC", Target: "main.orders_of_region", NextRun: now.Add(3 * time.Second).UTC(),
			Backlog: new(int64(1240 + i)), LagSeconds: new(1.4), Lock: "baton", LateAfterSeconds: 60,
			LastRun: &Run{ID: "01890a5d-ac96-774b-bcce-b302099a8057", State: "succeeded", Trigger: "schedule", Started: now.Add(-2 * time.Second), DurationMS: 84, Rows: 5210, NodeID: "db1"},
		})
	}
	for i := range nodes {
		s.Nodes = append(s.Nodes, Node{ID: fmt.Sprintf("db%d", i+1), State: "standby", Version: "0.1.0", ConfigHash: "9f3c1d7ab2", Address: fmt.Sprintf("10.0.0.%d:9747", i), LastSeenMSAgo: int64(i) * 300, ClockOffsetMS: 120})
	}
	for i := range 50 {
		at := now.Add(-time.Duration(i) * 7 * time.Minute)
		node := fmt.Sprintf("db%d", i/2%max(nodes, 1)+1)
		s.Events = append(s.Events, Event{At: at, Event: map[bool]string{true: "won", false: "stepped_down"}[i%2 == 0], NodeID: node, Epoch: int64(1753192331043 - i), Reason: "asked by alice: upgrade to the next version"})
	}
	d := &shelf{}
	for i := range entries {
		d.entries = append(d.entries, operate.Entry{
			ID: fmt.Sprintf("%d-0", 1753192331043-i), At: now.Add(-time.Duration(i) * 5 * time.Second),
			Run: &Run{ID: fmt.Sprintf("01890a5d-ac96-774b-bcce-b302099a%04d", i%10000), State: "failed", Trigger: "schedule", Started: now.Add(-time.Duration(i) * 5 * time.Second), DurationMS: 84, Rows: 5210, NodeID: "db1",
				Error: "write table \"orders\": connection refused: dial tcp 10.0.0.31:5432"},
		})
	}
	for i := range 240 {
		levels := map[string]operate.Level{}
		for _, j := range s.Jobs {
			lag := 20 + 180*math.Abs(math.Sin(float64(i)/30)) + float64(i%7)
			levels[j.Name] = operate.Level{LagSeconds: lag, Backlog: int64(lag * 900)}
		}
		d.samples = append(d.samples, operate.Sample{At: now.Add(-time.Duration(240-i) * 15 * time.Second), Jobs: levels})
	}
	for i := range 150 {
		d.letters = append(d.letters, operate.Letter{
			ID: fmt.Sprintf("01890a5dac96774bbcceb302099a%04d", i), Job: s.Jobs[0].Name, Database: "main", At: now.Add(-time.Hour),
			Error: "column \"title\" is varchar(80), the value has 211 characters", Record: `{"key":"article:17","title":"a title that is far longer than the column has room for"}`,
		})
	}
	return s, d
}
