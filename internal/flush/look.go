package flush

import (
	"context"

	"baton/internal/flush/row"
)

// Plan is what the pipeline will write, once the catalogue has been read: all that is
// wrong with the table, or with the job's mapping to it, is its error. It writes
// nothing: of a table that the first run would make it knows what it would be like.
func (p *Pipeline) Plan(ctx context.Context) (*row.Plan, error) {
	c, _, err := p.foresee(ctx)
	if err != nil {
		return nil, err
	}
	return c.mapping.Plan(), nil
}
