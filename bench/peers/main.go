// Command peers is Benthos, as its own documentation has one build it with a choice of components: Redis, SQL with the driver of
// PostgreSQL, and the pure ones. baton's pipelines are compared with it; see ../pipeline.
package main

import (
	"context"

	_ "github.com/benthosdev/benthos/v4/public/components/pure"
	_ "github.com/benthosdev/benthos/v4/public/components/redis"
	_ "github.com/benthosdev/benthos/v4/public/components/sql/base"
	"github.com/benthosdev/benthos/v4/public/service"
	_ "github.com/lib/pq"
)

func main() { service.RunCLI(context.Background()) }
