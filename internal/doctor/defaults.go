package doctor

import (
	"fmt"
	"strings"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/finding"
	"baton/internal/flush/row"
)

// resets finds the columns that a job sets to their default values although its configuration does not name them. This is a problem if
// another program fills these columns.
func resets(j config.Job, plan *row.Plan) []Finding {
	source, err := tasks.Source(j)
	if err != nil || source.Inputs.Guarantee.Once() || len(j.Flush.Columns) > 0 {
		return nil
	}
	var names []string
	for _, c := range plan.Columns {
		if c.Constant.OK {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{finding.Default.Of(jobSubject(j.Name), fmt.Sprintf(
		"table %s has a default for %s: the job sets it where a record in Redis has no such field", plan.Table.Name,
		strings.Join(names, ", ")),
		"a value that another program writes there is overwritten",
		"list the columns of the job under columns; leave out one that another program fills, or give it missing: keep")}
}
