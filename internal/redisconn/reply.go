package redisconn

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/gomodule/redigo/redis"
)

// Time reads the reply of TIME.
func Time(reply any) (time.Time, error) {
	clock, err := redis.Int64s(reply, nil)
	if err != nil || len(clock) != 2 {
		return time.Time{}, fmt.Errorf("redis TIME: unexpected reply %v: %w", reply, err)
	}
	return time.Unix(clock[0], clock[1]*1000).UTC(), nil
}

// Text returns the text of a reply without copying it. The bytes of the reply must not change afterwards.
func Text(reply []byte) string {
	return unsafe.String(unsafe.SliceData(reply), len(reply)) //nolint:gosec // see above
}

// StreamEntry reads a stream entry whose field names and values are texts.
func StreamEntry(entry any) (id string, fields map[string]string, err error) {
	parts, err := redis.Values(entry, nil)
	var pairs []any
	if err == nil {
		_, err = redis.Scan(parts, &id, &pairs)
	}
	if err == nil {
		fields, err = redis.StringMap(pairs, nil)
	}
	return id, fields, err
}
