package sandbox

// AtMost is the profile with no wider mode than the one that is named; "" leaves it
// as it is. A name that is not known is taken for the strictest.
func (p Profile) AtMost(name string) Profile {
	if name == "" {
		return p
	}
	mode, err := ParseMode(name)
	if err != nil {
		mode = ReadOnly
	}
	p.Mode = min(p.Mode, mode)
	return p
}
