package journal

import (
	"os"
	"strings"
	"time"
)

// Measure calls synced from now on each time the log was brought to the disk, or could not
// be, with how long that took. It replaces an earlier one. synced must not block.
func (j *Journal) Measure(synced func(took time.Duration, err error)) { j.write.synced.Store(&synced) }

func (r *recorder) measure(took time.Duration, err error) {
	if synced := r.synced.Load(); synced != nil {
		(*synced)(took, err)
	}
}

// Bytes returns how much the log and its index take, as far as they can be listed.
func (j *Journal) Bytes() (log, index int64) {
	entries, _ := os.ReadDir(j.files.path) // what cannot be listed is not counted
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil || e.IsDir():
		case strings.HasPrefix(e.Name(), indexName):
			index += info.Size()
		default:
			log += info.Size()
		}
	}
	return log, index
}
