package flush

import (
	"fmt"
	"time"
)

// ignoredEvery is the interval of reports about rows that the database accepted and did not write.
const ignoredEvery = time.Hour

// reportIgnored reports the rows that the database accepted and did not write, because these rows are recorded nowhere else.
func (r *run) reportIgnored(rows int64) {
	r.ignored += rows
	if r.ignored == 0 || r.cfg.OnNote == nil || time.Since(r.ignoredReportedAt) < ignoredEvery {
		return
	}
	r.cfg.OnNote(fmt.Sprintf("table %q: a trigger skipped %d rows that the database accepted, or wrote them elsewhere (RETURN NULL, "+
		"RAISE(IGNORE)); these rows are not dead letters",
		r.cfg.Mapping.Table, r.ignored))
	r.ignored, r.ignoredReportedAt = 0, time.Now()
}
