package flush

import (
	"fmt"
	"time"
)

// ignoredEvery is how often left-out rows are reported.
const ignoredEvery = time.Hour

// reportIgnored reports rows that the database has accepted and not written: nobody else
// would, and nothing else remembers them.
func (r *run) reportIgnored(rows int64) {
	r.ignored += rows
	if r.ignored == 0 || r.cfg.OnNote == nil || time.Since(r.toldIgnored) < ignoredEvery {
		return
	}
	r.cfg.OnNote(fmt.Sprintf("table %q: a trigger has left out, or written elsewhere, %d rows that the database accepted (RETURN NULL, "+
		"RAISE(IGNORE)); they are no dead letters",
		r.cfg.Mapping.Table, r.ignored))
	r.ignored, r.toldIgnored = 0, time.Now()
}
