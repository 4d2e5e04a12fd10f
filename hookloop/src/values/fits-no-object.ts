import { isJsonObject, type Json } from './json.ts'

/** Whether a JSON Schema fits no object for sure, as far as that can be seen without resolving references. */
export function fitsNoObject(value: Json): boolean {
  if (!isJsonObject(value)) return value === false
  const { type, enum: values, anyOf, oneOf, allOf } = value
  if (type !== undefined && ![type].flat().includes('object')) return true
  if ('const' in value ? !isJsonObject(value['const']) : Array.isArray(values) && !values.some(isJsonObject))
    return true
  const isNone = (each: Json | undefined): boolean => Array.isArray(each) && each.length > 0 && each.every(fitsNoObject)
  return isNone(anyOf) || isNone(oneOf) || (Array.isArray(allOf) && allOf.some(fitsNoObject))
}
