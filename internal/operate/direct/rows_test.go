package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/internal/config"
	"baton/internal/flush"
	"baton/internal/flush/row"
	"baton/internal/flush/verify"
	"baton/internal/operate"
)

// fakeKeys has no key, or does not answer.
type fakeKeys struct {
	verify.Source
	gone   bool
	failed error
	marked []string
}

func (f *fakeKeys) StillMissing(_ context.Context, records []row.Record) ([]row.Record, error) {
	if !f.gone {
		return nil, f.failed
	}
	return records, f.failed
}

func (f *fakeKeys) KeyOf(*row.Record) string { return "user:1" }

func (f *fakeKeys) Mark(_ context.Context, keys []string) error {
	f.marked = append(f.marked, keys...)
	return nil
}

// Its key may go between the look at Redis and the insertion: the job may have found no row to delete then.
func TestKeyThatGoesBesideAnUndeleteIsMarked(t *testing.T) {
	for _, c := range []struct {
		keys   fakeKeys
		says   string
		marked string
	}{
		{fakeKeys{}, "", "[]"},
		{fakeKeys{gone: true}, "lost the row's key meanwhile, so job users deletes the row again", "[user:1]"},
		{fakeKeys{failed: errors.New("away")}, "whether Redis still has the row's key: away: baton job verify users", "[]"},
	} {
		said := (&deletedRecord{source: &c.keys}).settle(t.Context(), "users")
		if (said == "") != (c.says == "") || !strings.Contains(said, c.says) || fmt.Sprint(c.keys.marked) != c.marked {
			t.Errorf("said %q, marked %v", said, c.keys.marked)
		}
	}
	var none *deletedRecord
	if said := none.settle(t.Context(), "users"); said != "" {
		t.Errorf("said %q", said)
	}
}

// deletersOf asks for the table of the row's job. It asks for the tables of other jobs only if the row's job does not write the table.
func TestAnotherTableThatCannotBeReadBlocksNoUndelete(t *testing.T) {
	job := func(name, table string) config.Job {
		j := config.Job{Name: name}
		j.Flush.From.Vanished = "delete"
		j.Flush.To.Database, j.Flush.To.Table = "main", table
		return j
	}
	const broken, absent = "broken", "absent"
	renamed := []config.Job{job("x", broken), job("people", "users"), job("eu", "users")}
	table := func(_ context.Context, name string) (row.Table, error) {
		switch name {
		case broken:
			return row.Table{}, errors.New("permission denied")
		case absent:
			return row.Table{}, flush.ErrNoTable
		}
		return row.Table{Name: strings.ToLower(name)}, nil
	}
	for name, c := range map[string]struct {
		jobs   []config.Job
		want   string
		known  bool
		failed bool
	}{
		"the row's job":              {[]config.Job{job("x", broken), job("users", "USERS"), job("eu", "users")}, "users", true, false},
		"renamed":                    {renamed, "people eu", true, false},
		"the table of the row's job": {[]config.Job{job("users", broken), job("people", "users")}, "", false, true},
		"no writer, a broken table":  {[]config.Job{job("other", broken), job("sums", "sums")}, "", false, true},
		"no writer, an absent table": {[]config.Job{job("other", absent), job("users", "sums")}, "", false, false},
		"it now writes others":       {[]config.Job{job("users", "sums"), job("people", "users")}, "people", true, false},
	} {
		d := &deadLetters{config: config.Config{Jobs: c.jobs}}
		jobs, known, err := d.deletersOf(t.Context(), table, operate.DeletedRow{Job: "users", Database: "main", Table: "users"})
		var names []string
		for _, j := range jobs {
			names = append(names, j.Name)
		}
		if got := strings.Join(names, " "); got != c.want || known != c.known || (err != nil) != c.failed {
			t.Errorf("%s: jobs %q, known %v, %v", name, got, known, err)
		}
	}
}

// Two jobs may write one table from keys of different patterns. Redis has the row's key under one of these patterns.
func TestOneJobWithTheKeyIsEnoughForAnUndelete(t *testing.T) {
	jobs := []config.Job{{Name: "eu"}, {Name: "us"}}
	have := func(names ...string) func(config.Job) (*deletedRecord, error) {
		return func(j config.Job) (*deletedRecord, error) {
			if slices.Contains(names, j.Name) {
				return &deletedRecord{}, nil
			}
			return nil, fmt.Errorf("no key of job %s", j.Name)
		}
	}
	for _, name := range []string{"eu", "us"} {
		if keeper, record, err := keeperOf(jobs, have(name)); keeper != name || record == nil || err != nil {
			t.Errorf("Redis has the key of %s: %q, %v, %v", name, keeper, record, err)
		}
	}
	if _, _, err := keeperOf(jobs, have()); err == nil || err.Error() != "no key of job eu\nno key of job us" {
		t.Errorf("no key: %v", err)
	}
	if keeper, record, err := keeperOf(nil, have()); keeper != "" || record != nil || err != nil {
		t.Errorf("no job: %q, %v, %v", keeper, record, err)
	}
}
