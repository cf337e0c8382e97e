package show

import "fmt"

// Epoch is an epoch where it only tells terms apart: its end. Data, and baton status, have all of it.
func Epoch(epoch int64) string {
	const apart = 1_000_000
	if epoch < 1000*apart {
		return fmt.Sprint(epoch)
	}
	return fmt.Sprintf("…%06d", epoch%apart)
}
