package doctor

import (
	"fmt"
	"strings"

	"baton/internal/config"
	"baton/internal/daemon/tasks"
	"baton/internal/flush/row"
)

// resets names the columns that a job sets back to their default, although no line of its configuration names them:
// another program may fill them.
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
	return []Finding{{Severity: SeverityInfo, Subject: jobSubject(j.Name), What: fmt.Sprintf(
		"table %s has a default for %s: the job sets it where a record in Redis has no such field", plan.Table.Name,
		strings.Join(names, ", ")),
		Consequence: "a value that another program writes there is overwritten",
		Remedy:      "list the columns of the job under columns; leave out one that another program fills, or give it missing: keep"}}
}
