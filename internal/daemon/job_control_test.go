package daemon

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
)

func TestOneOfVeryManyJobsThatIsNotThereIsRefusedInALine(t *testing.T) {
	var c config.Config
	for i := range 2000 {
		c.Jobs = append(c.Jobs, config.Job{Name: fmt.Sprintf("job-%04d", i)})
	}
	_, err := Next(c, "report", time.Now(), 1)
	if !errors.Is(err, ErrNoJob) || !strings.HasSuffix(err.Error(), "job-0028, job-0029 and 1970 more: baton job list") {
		t.Errorf("%v", err)
	}
}
