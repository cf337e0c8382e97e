package diagnose

import "time"

// DataState says how well the tables keep up with the data in Redis.
type DataState string

// These are the states of the data, the worst state first.
const (
	DataLate     DataState = "late"     // changes have waited longer than allowed, see Late
	DataStuck    DataState = "stuck"    // flushes fail while changes wait, see Unwritten
	DataUnknown  DataState = "unknown"  // it is unknown how far some flushes are behind, see Unmeasured
	DataFresh    DataState = "fresh"    // no table is further behind than allowed
	DataNoneHere DataState = "no_flush" // all jobs are commands, or there are no jobs
)

// Data says how far the tables are behind the data in Redis.
type Data struct {
	State      DataState
	Late       []Job // the flushes whose data is late
	Unwritten  []Job
	Unmeasured []Job
	Flushes    int
	Worst      *Job          // the flush that is furthest behind, with late flushes first; nil if no flush was measured
	Lag        time.Duration // the lag of Worst
	Waiting    int64         // the number of waiting changes that were counted
	Uncounted  int           // the number of flushes without a count, whose changes are not in Waiting
}

// DataOf returns how far the data that the flushes of s have written to databases lags behind the data in Redis.
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
