package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"baton/bench/internal/rig"
)

// measured returns a bench in which all programs have the same figures, except baton, which is three times as fast and uses a tenth of
// the processor time.
func measured(out io.Writer) *bench {
	b := &bench{options: options{kills: 30}, report: rig.NewReport(out), best: map[string]setting{}, tried: map[string]int{},
		speeds: map[result][]speed{}, audits: map[result]*audit{}}
	for _, f := range flows() {
		b.best[f.name] = setting{outputJSON, 1000, 2, batchPeriod}
		for _, c := range contenders() {
			s, a := speed{rows: 1000, seconds: 3, cpu: 1, peakMB: 50}, audit{kills: 30, produced: 100, there: 100, distinct: 100}
			if c.name == nameBaton {
				s.seconds, s.cpu = 1, 0.1
			}
			b.speeds[result{f.name, c.name}], b.audits[result{f.name, c.name}] = []speed{s}, &a
		}
	}
	return b
}

func TestRequirementsAreMetAndMissed(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(b *bench)
		missed string
	}{
		{"all met", func(*bench) {}, ""},
		{"too slow", func(b *bench) { b.speeds[result{flowStream, nameBaton}][0].seconds = 2.5 }, "1.2 × the rows a second"},
		{"too much processor time", func(b *bench) { b.speeds[result{flowStream, nameBaton}][0].cpu = 0.6 }, "0.60 of its CPU time"},
		{"one lost", func(b *bench) { b.audits[result{flowList, nameBaton}].distinct = 99 }, "1 lost"},
		{"one twice", func(b *bench) { b.audits[result{flowList, nameBaton}].there = 101 }, "1 written twice"},
		{"others may lose", func(b *bench) { b.audits[result{flowList, nameBenthos}].distinct = 50 }, ""},
	} {
		b := measured(io.Discard)
		c.change(b)
		b.tables()
		err := b.report.Verdict()
		if (err != nil) != (c.missed != "") || err != nil && !strings.Contains(err.Error(), c.missed) {
			t.Errorf("%s: got %v, want it to say %q", c.name, err, c.missed)
		}
	}
}

func TestTablesNameTheSettingsThatCount(t *testing.T) {
	var out bytes.Buffer
	measured(&out).tables()
	if want := "Benthos: sql_raw with json_to_recordset, 1000 rows, 2 writers"; !strings.Contains(out.String(), want) {
		t.Errorf("nothing says %q:\n%s", want, out.String())
	}
}

func TestChartIsWellFormedAndShowsEveryContender(t *testing.T) {
	chart := measured(io.Discard).chart()
	for decoder := xml.NewDecoder(strings.NewReader(chart)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range contenders() {
		if !strings.Contains(chart, ">"+c.title+"<") {
			t.Errorf("%s is not in the chart", c.title)
		}
	}
}
