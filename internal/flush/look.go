package flush

import (
	"context"

	"baton/internal/flush/row"
)

// Plan reads the catalogue and returns the plan of the pipeline's writes. Its error lists all problems of the table and of the job's
// mapping. Plan writes nothing. Plan also works for a table that the first run would create.
func (p *Pipeline) Plan(ctx context.Context) (*row.Plan, error) {
	c, _, err := p.foresee(ctx)
	if err != nil {
		return nil, err
	}
	return c.mapping.Plan(), nil
}
