package diagnose

import "time"

// DataState tells whether databases have the data of Redis.
type DataState string

// States of the data, the worst first.
const (
	DataLate     DataState = "late"     // changes wait longer than they may: see Late
	DataStuck    DataState = "stuck"    // flushes fail while changes wait: see Unwritten
	DataUnknown  DataState = "unknown"  // how far some are behind is unknown: see Unmeasured
	DataFresh    DataState = "fresh"    // no table is further behind than it may be
	DataNoneHere DataState = "no_flush" // all jobs are commands, or there are none
)

// Data tells how far tables are behind Redis.
type Data struct {
	State      DataState
	Late       []Job // flushes that are
	Unwritten  []Job
	Unmeasured []Job
	Flushes    int
	Worst      *Job          // the flush that is furthest behind, first among the late ones; nil: none is measured
	Lag        time.Duration // of Worst
	Waiting    int64         // changes, as far as they were counted
	Uncounted  int           // flushes without a count: Waiting lacks theirs
}

// DataOf judges the flushes.
func DataOf(s Snapshot) Data {
	var d Data
	now := s.Clock()
	for i, j := range s.Jobs {
		if j.Command {
			continue
		}
		d.Flushes++
		if j.Backlog != nil {
			d.Waiting += *j.Backlog
		} else {
			d.Uncounted++
		}
		if j.IsUnwritten() {
			d.Unwritten = append(d.Unwritten, j)
		}
		lag, known := j.Lag()
		late := j.IsDataLate(now)
		switch {
		case !known:
			d.Unmeasured = append(d.Unmeasured, j)
			continue
		case late:
			d.Late = append(d.Late, j)
		}
		first := late && len(d.Late) == 1
		if d.Worst == nil || first || lag > d.Lag && (late || len(d.Late) == 0) {
			d.Worst, d.Lag = &s.Jobs[i], lag
		}
	}
	switch {
	case d.Flushes == 0:
		d.State = DataNoneHere
	case len(d.Late) > 0:
		d.State = DataLate
	case len(d.Unwritten) > 0:
		d.State = DataStuck
	case len(d.Unmeasured) > 0:
		d.State = DataUnknown
	default:
		d.State = DataFresh
	}
	return d
}
