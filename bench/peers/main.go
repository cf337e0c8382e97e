// Command peers is Benthos, built as its documentation describes, with some of its components: Redis, SQL with the driver of PostgreSQL,
// and the pure components. The program in ../pipeline compares baton's pipelines with it.
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
