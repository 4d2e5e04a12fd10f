// Preloaded by every test file: what property tests try is drawn by chance, from the seed that the runner names.
import fc from 'fast-check'

const seed = Number(process.env['HOOKLOOP_TEST_SEED'])
fc.configureGlobal({ seed })
