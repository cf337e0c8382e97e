package testsupport

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// A server that is down for a while can use its port again, because no other test gets the port, also not a test in another process.
func TestAPortBelongsToOneProcess(t *testing.T) {
	const asks = "BATON_TEST_ASKS_FOR_PORT"
	if text := os.Getenv(asks); text != "" {
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if reserve(port) {
			os.Exit(7)
		}
		return
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	if reserve(port) {
		t.Errorf("port %d is given twice by one process", port)
	}
	other := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	other.Env = append(os.Environ(), asks+"="+strconv.Itoa(port))
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("port %d is given to another process, too: %v\n%s", port, err, out)
	}
}
