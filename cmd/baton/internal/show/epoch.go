package show

import "fmt"

// Epoch shortens an epoch to its last digits, for places where it only distinguishes terms. Output for programs, and the text of "baton
// status", contain the whole epoch.
func Epoch(epoch int64) string {
	const apart = 1_000_000
	if epoch < 1000*apart {
		return fmt.Sprint(epoch)
	}
	return fmt.Sprintf("…%06d", epoch%apart)
}
