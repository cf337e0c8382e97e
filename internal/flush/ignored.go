package flush

import (
	"fmt"
	"time"
)

// ignoredEvery is how often it is told that rows are left out.
const ignoredEvery = time.Hour

// tellIgnored tells of rows that the database has accepted and not written: nobody else
// would, and nothing else remembers them.
func (r *run) tellIgnored(rows int64) {
	r.ignored += rows
	if r.ignored == 0 || r.cfg.OnNote == nil || time.Since(r.toldIgnored) < ignoredEvery {
		return
	}
	r.cfg.OnNote(fmt.Sprintf("table %q: a trigger has left out, or written elsewhere, %d rows that the database accepted (RETURN NULL, "+
		"RAISE(IGNORE)); they are no dead letters",
		r.cfg.Mapping.Table, r.ignored))
	r.ignored, r.toldIgnored = 0, time.Now()
}
