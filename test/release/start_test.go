package release

import (
	"os"
	"path/filepath"
	"testing"

	"baton/internal/testsupport"
)

// start has the image's root file system read-only and its two folders writable, starts the program as
// the image's user, and asks it as the image's health check does.
const start = `set -e
root=$1
mount --bind "$root" "$root"
mount -t tmpfs -o uid=65532,gid=65532,mode=750 tmpfs "$root/run/baton"
mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$root/var/lib/baton"
mount -o remount,ro,bind "$root"
if touch "$root/x" 2>/dev/null; then echo "the root is writable" >&2; exit 1; fi
export RUNTIME_DIRECTORY=/run/baton STATE_DIRECTORY=/var/lib/baton
baton() { chroot --userspec=65532:65532 --groups=65532 "$root" /usr/bin/baton "$@"; }
chroot --userspec=65532:65532 --groups=65532 "$root" /usr/bin/baton run --config /etc/baton/baton.yaml &
node=$!
tries=0
until baton status --server "http://127.0.0.1:$2" -o json >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ $tries -lt 300 ] || { echo "the health check never succeeded" >&2; exit 1; }
	sleep 0.2
done
kill -TERM $node
wait $node
if baton status --server "http://127.0.0.1:$2" -o json >/dev/null 2>&1; then echo "the health check succeeds without a node" >&2; exit 1; fi
`

// It takes root, and mount namespaces: make test-release.
func TestTheImageStartsWithoutRootOnAReadOnlySystem(t *testing.T) {
	asked(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "../..", nil, "make", "image")
	run(t, "", nil, "skopeo", "copy", "oci-archive:../../dist/baton-image.tar", "oci:"+dir+"/layout:baton")
	run(t, "", nil, "umoci", "unpack", "--image", dir+"/layout:baton", dir+"/bundle")
	redis, port := testsupport.StartRedis(t), "17747"
	root := filepath.Join(dir, "bundle", "rootfs")
	config := "redis: {url: \"" + redis.URL() + "\"}\nhttp: {listen: \"127.0.0.1:" + port + "\"}\n"
	if err := os.WriteFile(filepath.Join(root, "etc/baton/baton.yaml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "", nil, "unshare", "--mount", "sh", "-c", start, "sh", root, port)
}
