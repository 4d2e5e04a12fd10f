/** Formats that are checked, each in linear time. Others are only a description for the model. */
export const formatTests: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['date', isDate],
  ['time', matches(/^\d\d:\d\d:\d\d(?:\.\d+)?(?:z|[+-]\d\d:\d\d)$/i)],
  ['date-time', (text) => isDate(text.slice(0, 10)) && dateTime.test(text)],
  ['email', matches(/^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)*$/)],
  ['hostname', matches(/^(?=.{1,253}$)[a-z\d](?:[a-z\d.-]*[a-z\d])?$/i)],
  ['json-pointer', matches(/^(?:\/(?:[^~/]|~[01])*)*$/)],
  ['uuid', matches(/^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i)],
  ['ipv4', (text) => text.split('.').length === 4 && text.split('.').every(isByte)],
  ['ipv6', (text) => URL.canParse(`http://[${text}]/`)],
  ['uri', isUri],
  ['url', (text) => isUri(text) && URL.canParse(text) && /^[\w.:[\]-]*$/.test(new URL(text).hostname)],
])

const dateTime = /^.{10}[t ][0-2]\d:[0-5]\d:[0-6]\d(?:\.\d+)?(?:z|[+-][0-2]\d:[0-5]\d)$/i

function matches(pattern: RegExp): (text: string) => boolean {
  return (text) => pattern.test(text)
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const [year, month, day] = text.split('-').map(Number) as [number, number, number]
  const last = new Date(Date.UTC(2000, month, 0)).getUTCDate()
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return month >= 1 && month <= 12 && day >= 1 && day <= (month === 2 && !isLeap ? 28 : last)
}

function isByte(text: string): boolean {
  return /^(?:0|[1-9]\d{0,2})$/.test(text) && Number(text) <= 255
}

function isUri(text: string): boolean {
  return /^[a-z][a-z\d+.-]*:/i.test(text) && !/\s/.test(text)
}
