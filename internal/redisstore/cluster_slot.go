package redisstore

// slotCount is the number of slots of every Redis Cluster.
const slotCount = 16384

// keySlot is the slot of a key: CRC-16 (XMODEM) of its hash tag, or of all of it.
func keySlot(key string) int {
	if tag, ok := hashTag(key); ok {
		key = tag
	}
	// Half bytes of the polynomial 0x1021: every row's key comes by here.
	table := [16]uint16{
		0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
		0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
	}
	var crc uint16
	for i := range len(key) {
		crc = crc<<4 ^ table[byte(crc>>12)^key[i]>>4]
		crc = crc<<4 ^ table[byte(crc>>12)^key[i]&15]
	}
	return int(crc % slotCount)
}
