package flush

import (
	"fmt"
	"time"
)

// ignoredEvery is the interval of reports about ignored rows.
const ignoredEvery = time.Hour

// reportIgnored reports rows that the database accepted and did not write. There is no other
// record of them.
func (r *run) reportIgnored(rows int64) {
	r.ignored += rows
	if r.ignored == 0 || r.cfg.OnNote == nil || time.Since(r.ignoredReportedAt) < ignoredEvery {
		return
	}
	r.cfg.OnNote(fmt.Sprintf("table %q: a trigger has left out, or written elsewhere, %d rows that the database accepted (RETURN NULL, "+
		"RAISE(IGNORE)); they are no dead letters",
		r.cfg.Mapping.Table, r.ignored))
	r.ignored, r.ignoredReportedAt = 0, time.Now()
}
